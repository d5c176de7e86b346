"""The rules, without text, models or time: a game follows from its set-up, its seed and its choices."""

from __future__ import annotations
