"""Middlewares between an agent and a backend, each with one concern; `Model` puts them around a backend.

Count         adds up what an agent's parts ask
Record        keeps every reply and sends nothing that is kept; `Replayed` stands for a model that is not asked
CheckDecision, CheckBudgets   refuse before a limit in tokens, money or calls could be passed
Retry         tries again after errors that may be over in a moment
RateLimit     so many requests at once, so many a minute
Measure       tokens and seconds by model

`wsap_llm.backends.pool` says in which order an agent's models have them.
"""

from __future__ import annotations

from wsap_core.seams.model import Price
from wsap_llm.middleware.budgets import (
    Budget,
    BudgetLimits,
    Budgets,
    CheckBudgets,
    CheckDecision,
    prices_for,
    read_price,
)
from wsap_llm.middleware.measure import Count, Measure, Meter, Throughput, UsageCounter
from wsap_llm.middleware.model import Ask, Middleware, Model
from wsap_llm.middleware.record import Record, Replayed
from wsap_llm.middleware.retry import RateLimit, Retry

__all__ = [
    "Ask",
    "Budget",
    "BudgetLimits",
    "Budgets",
    "CheckBudgets",
    "CheckDecision",
    "Count",
    "Measure",
    "Meter",
    "Middleware",
    "Model",
    "Price",
    "RateLimit",
    "Record",
    "Replayed",
    "Retry",
    "Throughput",
    "UsageCounter",
    "prices_for",
    "read_price",
]
