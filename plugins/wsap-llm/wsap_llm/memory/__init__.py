"""The built-in memories.

none       stores nothing
fifo       the last K steps in detail, and a running summary of everything before (seed 003)
facts      facts, plans and history: the protocol's plain `Memory`
fulltext   everything experienced, searched by relevance, recency and importance

cells      shared parts: cells, words, token budgets, snapshots

A memory counts time in moments (one for each entry) and in the steps of games, never by the clock, so that equal
experiences give equal memories. All entries are untrusted data: one line each, without control characters.
"""

from __future__ import annotations
