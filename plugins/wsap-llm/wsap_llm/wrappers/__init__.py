"""Wrappers around any backend, each with one concern; they compose in any order.

Retrying   tries again what may be over in a moment, as told or with growing pauses
Limited    so many requests at once, so many a minute
Budgeted   refuses before a limit in tokens, money or calls could be passed
Cached     asks the same thing once
Recorded   keeps every reply;  Replayed gives them back without a network
"""

from __future__ import annotations

from wsap_core.seams.model import Price
from wsap_llm.wrappers.budget import Budget, Budgeted, BudgetLimits, Budgets
from wsap_llm.wrappers.cache import Cached, MemoryStore, Store
from wsap_llm.wrappers.limits import Limited
from wsap_llm.wrappers.record import Journal, MemoryJournal, Recorded, Replayed
from wsap_llm.wrappers.retry import Retrying

__all__ = [
    "Budget",
    "BudgetLimits",
    "Budgeted",
    "Budgets",
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
