"""Texts as words that can be compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Set

_WORD = re.compile(r"[^\W_]+")
MOST = 2_000
"""Most words that are taken of a text."""


def words(text: str) -> list[str]:
    """Return the words of a text in order: small letters without accents, and without a plural's s.

    Words are runs of letters and digits of any script; there is no other character in them.
    """
    folded = text[: 16 * MOST].lower()
    if not folded.isascii():
        folded = "".join(c for c in unicodedata.normalize("NFD", folded) if not unicodedata.combining(c))
    return [_stem(word) for word in _WORD.findall(folded)[:MOST]]


def overlap(own: Iterable[str], asked: Set[str]) -> float:
    """Return the share of the different words of a text that are asked for, from 0 to 1."""
    different = dict.fromkeys(own)
    return sum(word in asked for word in different) / len(different) if different else 0.0


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
