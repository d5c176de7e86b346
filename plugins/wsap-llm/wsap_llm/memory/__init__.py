"""The built-in memories.

none       keeps nothing
fifo       the last K steps in detail, and a running summary of everything before (seed 003)
facts      facts, plans and history: the protocol's plain `Memory`
fulltext   everything lived through, searched by relevance, recency and importance

cells      what they are made of: cells, words, budgets of tokens, snapshots

A memory counts time in moments (one for each thing remembered) and in the steps of games, never
by the clock, so that the same life gives the same memory. What is remembered is data wherever it
comes from: one line each, without control characters, and never an instruction to anything here.
"""

from __future__ import annotations
