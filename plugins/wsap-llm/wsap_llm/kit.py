"""Public API for other distributions that implement model backends, or use models outside a game.

For backends:

ThinkSplitter      separates thinking from text in a stream
estimate_request   estimates the tokens of a prompt
retry_after        the wait that a server asks for
has_pictures       whether a request contains pictures
refused_picture    the error for a server that refuses pictures
Written            function calls as the text of a reply; `linked` and `declared`: the same in requests
json_pattern       a JSON Schema as a regular expression
read_options       a backend's options as its dataclass

For users of models:

ModelPool          models by address, with retries and limits; `find_backend` resolves an address
Budget             a spending limit; used with BudgetLimits, Budgets, Price, prices_for and read_price
split_thinking     splits a whole reply into text and thinking
strict_schema      a JSON Schema within the subset of strict modes
find_values        the JSON values in a reply, parsed leniently
Prompts            the templates of prompts, by default or from a folder, with their version
Quoter             quotes text by others in a prompt so that it can't pass for instructions
continue_text      prepares a thought that a tool interrupted for continuation; it starts with OPENING

Agents are in `wsap_llm.agent`, recorded turns as model messages in `wsap_llm.export`. Everything else may change with
any version.
"""

from __future__ import annotations

from wsap_core.seams.model import Price
from wsap_llm.backends.failures import refused_picture, retry_after
from wsap_llm.backends.pool import ModelPool, find_backend
from wsap_llm.calling import Written, declared, linked
from wsap_llm.middleware.budgets import Budget, BudgetLimits, Budgets, prices_for, read_price
from wsap_llm.option_reading import read_options
from wsap_llm.patterns import json_pattern
from wsap_llm.pictures import has_pictures
from wsap_llm.prompts import Prompts
from wsap_llm.quoting import Quoter
from wsap_llm.reply.repair import find_values
from wsap_llm.reply.tags import OPENING, continue_text
from wsap_llm.strict_schema import strict_schema
from wsap_llm.thinking import ThinkSplitter, split_thinking
from wsap_llm.tokens import estimate_request

__all__ = [
    "OPENING",
    "Budget",
    "BudgetLimits",
    "Budgets",
    "ModelPool",
    "Price",
    "Prompts",
    "Quoter",
    "ThinkSplitter",
    "Written",
    "continue_text",
    "declared",
    "estimate_request",
    "find_backend",
    "find_values",
    "has_pictures",
    "json_pattern",
    "linked",
    "prices_for",
    "read_options",
    "read_price",
    "refused_picture",
    "retry_after",
    "split_thinking",
    "strict_schema",
]
