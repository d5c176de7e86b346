"""What other distributions may use of this one: for backends of models, and for whoever asks models outside a game.

For backends:

ThinkSplitter      tells thinking from text while both are still streamed
estimate_request   about how many tokens a prompt has
retry_after        how long a server asks to wait
has_pictures       whether a request has pictures in it
refused_picture    the error for a server that takes no pictures
Written            calls of functions as the text of a reply; linked, declared: the same in requests
json_pattern       a JSON Schema as a regular expression
read_options       a backend's options, as its dataclass declares them

For whoever asks models:

ModelPool          asks them by address, with retries and limits; find_backend: what an address names
Budget             what may still be spent; BudgetLimits, Budgets, Price, prices_for, read_price go with it
split_thinking     what was said in a whole reply, and what was thought
strict_schema      a JSON Schema within the subset of strict modes
find_values        the JSON values in a reply, read with tolerance
Quoter             text of others, quoted in a prompt so that it can't pass for instructions
continue_text      a thought that a tool interrupted, ready to be continued; it begins with OPENING

Agents are in `wsap_llm.agent`, and played turns as prompts and replies in `wsap_llm.export`. Everything
else may change from one version to the next.
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
