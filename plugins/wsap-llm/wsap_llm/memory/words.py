"""The words of a text, by which memories find what fits a query: stems, or pairs of characters.

A word is cut to its stem by the Snowball stemmer of its script: Russian for Cyrillic, English for Latin. Where a script
puts no spaces between words (Chinese, Japanese, Thai and others), each pair of neighbouring characters is a word, as in
Lucene's CJK analyzer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Set
from functools import lru_cache

MOST_WORDS = 2_000
"""Maximum number of words of a text."""

_WORD = re.compile(r"[^\W_]+")
# Blocks of scripts without spaces between words.
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
)
_RUNS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_CYRILLIC = re.compile("[\u0400-\u04ff]+")


def words(text: str) -> list[str]:
    """Return the words of a text in order: letters and digits of any script, in lower case, without accents."""
    lower = unicodedata.normalize("NFC", text[: 16 * MOST_WORDS].lower())
    return [word for run in _WORD.findall(lower)[:MOST_WORDS] for word in _in_run(run)][:MOST_WORDS]


def overlap(own: Iterable[str], asked: Set[str]) -> float:
    """Return the share of a text's distinct words that are in `asked`, from 0 to 1."""
    different = dict.fromkeys(own)
    return sum(word in asked for word in different) / len(different) if different else 0.0


def _in_run(run: str) -> Iterator[str]:
    if run.isascii():
        yield _stem(run)
        return
    for part in _RUNS.findall(run):
        if not re.match(f"[{_UNSPACED}]", part):
            yield _stem(part)
        elif len(part) == 1:
            yield part
        else:
            yield from (part[at : at + 2] for at in range(len(part) - 1))


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    stemmed = _stemmer("russian" if _CYRILLIC.fullmatch(word) else "english")(word)
    if stemmed.isascii():
        return stemmed
    return "".join(c for c in unicodedata.normalize("NFD", stemmed) if c.isalnum())


@lru_cache(maxsize=2)
def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer  # deferred for weight: it brings all its languages

    stem: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return stem
