"""Public API for other distributions that implement model backends, or use models outside a game.

For backends:

ThinkSplitter      gathers a reply that comes in pieces, its thinking apart from its text
streams            whether to stream a reply, by the option of a backend
estimate_request   estimates the tokens of a prompt
ServerClient       a model of a server over HTTP; a subclass adds the body of requests and, if it differs, its parts
ReplyReader        how a server's replies are read; `LineReader`: those that stream a JSON object a line
Advice             what a server's error messages advise
said_and_called    text and function calls of a reply; `linked` and `declared`: the same in requests
json_pattern       a JSON Schema as a regular expression
read_options       a backend's options as its dataclass; `option_defs`: the same as declarations for its spec

For users of models, and for what people type:

ModelPool          models by address, with retries and limits; `find_backend` resolves an address
Waited             what is waited for, of a pool of models, as a line
Budget             a spending limit; used with BudgetLimits, Budgets, Price, prices_for and read_price
split_thinking     splits a whole reply into text and thinking
strict_schema      a JSON Schema within the subset of strict modes
find_object        the object in a reply that fits a JSON Schema, parsed leniently
find_values        the JSON values in a reply, parsed leniently
read_reply         the one legal action in a reply (`Understood`), or why there is none (`NotUnderstood`)
legal_actions      the actions that an observation allows, for `read_reply`
Prompts            the templates of prompts, by default or from a folder, with their version
Quoter             quotes text by others in a prompt so that it can't pass for instructions
typed_action       the action that a person typed
parameters_of      the properties of a foreign JSON Schema as parameters; UnusableToolError if that can't be done
continue_text      prepares a thought that a tool interrupted for continuation; it starts with OPENING

Agents are in `wsap_llm.agent`, recorded turns as model messages in `wsap_llm.export`. Everything else may change with
any version.
"""

from __future__ import annotations

from wsap_core.seams.model import Price
from wsap_llm.backends.failures import Advice
from wsap_llm.backends.openai.client import ServerClient
from wsap_llm.backends.openai.wire import LineReader, ReplyReader, streams
from wsap_llm.backends.pool import ModelPool, find_backend
from wsap_llm.calling import declared, linked, said_and_called
from wsap_llm.mcp.mapping import UnusableToolError, parameters_of
from wsap_llm.middleware.budgets import Budget, BudgetLimits, Budgets, prices_for, read_price
from wsap_llm.middleware.show import Waited
from wsap_llm.options.declared import option_defs, read_options
from wsap_llm.prompts import Prompts
from wsap_llm.reply.candidates import NotUnderstood, Understood
from wsap_llm.reply.json_text.fitting import find_object
from wsap_llm.reply.json_text.repair import find_values
from wsap_llm.reply.reading import read_reply
from wsap_llm.reply.schema import legal_actions
from wsap_llm.reply.tags import OPENING, continue_text
from wsap_llm.reply.typed import typed_action
from wsap_llm.schemas.patterns import json_pattern
from wsap_llm.schemas.strict_schema import strict_schema
from wsap_llm.text.quoting import Quoter
from wsap_llm.text.thinking import ThinkSplitter, split_thinking
from wsap_llm.text.tokens import estimate_request

__all__ = [
    "OPENING",
    "Advice",
    "Budget",
    "BudgetLimits",
    "Budgets",
    "LineReader",
    "ModelPool",
    "NotUnderstood",
    "Price",
    "Prompts",
    "Quoter",
    "ReplyReader",
    "ServerClient",
    "ThinkSplitter",
    "Understood",
    "UnusableToolError",
    "Waited",
    "continue_text",
    "declared",
    "estimate_request",
    "find_backend",
    "find_object",
    "find_values",
    "json_pattern",
    "legal_actions",
    "linked",
    "option_defs",
    "parameters_of",
    "prices_for",
    "read_options",
    "read_price",
    "read_reply",
    "said_and_called",
    "split_thinking",
    "streams",
    "strict_schema",
    "typed_action",
]
