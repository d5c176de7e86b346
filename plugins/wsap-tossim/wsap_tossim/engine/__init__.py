"""The rules, without text, models or time: a game is its set-up, its seed, and the choices made."""

from __future__ import annotations
