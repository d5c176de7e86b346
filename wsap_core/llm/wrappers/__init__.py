"""Wrappers around any backend, each with one concern; they compose in any order.

Retrying   tries again what may be over in a moment, as told or with growing pauses
Limited    so many requests at once, so many a minute
Budgeted   refuses before a limit in tokens, money or calls could be passed
Cached     asks the same thing once
Recorded   keeps every reply;  Replayed gives them back without a network
"""

from __future__ import annotations

from wsap_core.llm.wrappers.budget import Budget, Budgeted, Price
from wsap_core.llm.wrappers.cache import Cached, MemoryStore, Store
from wsap_core.llm.wrappers.limits import Limited
from wsap_core.llm.wrappers.record import Journal, MemoryJournal, Recorded, Replayed
from wsap_core.llm.wrappers.retry import Retrying

__all__ = [
    "Budget",
    "Budgeted",
    "Cached",
    "Journal",
    "Limited",
    "MemoryJournal",
    "MemoryStore",
    "Price",
    "Recorded",
    "Replayed",
    "Retrying",
    "Store",
]
