"""The rules, without prompts, models or clocks: a game is a function of its set-up, seed and choices."""

from __future__ import annotations
