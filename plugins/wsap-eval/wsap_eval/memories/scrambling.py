"""Scrambles texts: the same shape and length, and nothing left of what they say."""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at by for from as and or if it its is are was were be been this that these those there "
        "here i you he she we they me my your his her our their them us "
        "и в во на с со к ко по за из от у о об а но же ли бы то это этот эта эти тот та те там тут здесь как что "
        "я ты он она оно мы вы они мне мой твой его её их нам вам",
    )
)
"""Words that connect others and say nothing by themselves, in English and Russian; they are kept where they stand."""


def scrambled(texts: Sequence[str]) -> list[str]:
    """Return texts in which each word, number and sign is consistently replaced by another one.

    A word is replaced by another word of the texts with the same or a similar length that stands in none of the texts
    where the first one stands; where there is none, by a made-up word of the same length. So not even the set of a
    text's words remains. A number is replaced by another with as many digits, a sign such as an arrow by another sign;
    punctuation and the words in `FUNCTION_WORDS` stay, unless a text would not change otherwise. The result depends on
    nothing but the texts. A text without any letter, digit or sign says nothing, and stays as it is.
    """
    rng = random.Random(hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest())
    tokens = [[token for token in _TOKEN.findall(text) if _says_something(token)] for text in texts]
    content = [[token for token in found if token.lower() not in FUNCTION_WORDS] or found for found in tokens]
    new = _Replacements(content, rng)
    done = []
    for text, own in zip(texts, content, strict=True):
        done.append(_TOKEN.sub(partial(_replaced, new, frozenset(own)), text))
    return done


def _replaced(new: _Replacements, wanted: frozenset[str], found: re.Match[str]) -> str:
    return new.of(found[0]) if found[0] in wanted else found[0]


def _says_something(token: str) -> bool:
    return token.isalnum() or unicodedata.category(token[0])[0] == "S"


class _Replacements:
    """Token -> its replacement, for tokens that stand in texts together."""

    def __init__(self, texts: Sequence[Sequence[str]], rng: random.Random) -> None:
        self._rng = rng
        self._with: dict[str, set[int]] = defaultdict(set)
        """Lower-case token -> the numbers of the texts in which it stands."""
        for number, own in enumerate(texts):
            for token in own:
                self._with[token.lower()].add(number)
        self._new: dict[str, str] = {}
        words = sorted(word for word in self._with if word.isalpha())
        self._letters = _alphabets("".join(words))
        free: dict[int, list[str]] = defaultdict(list)
        rng.shuffle(words)
        for word in words:
            free[len(word)].append(word)
        rng.shuffle(words)
        for word in words:
            self._new[word] = self._other_word(word, free) or self._made_up(word)
        for token in sorted(self._with.keys() - self._new.keys()):
            self._new[token] = self._other_number(token) if token.isdigit() else self._other_sign(token)

    def of(self, token: str) -> str:
        """Return the replacement of a token, with its capitals."""
        new = self._new[token.lower()]
        if len(token) > 1 and token.isupper():
            return new.upper()
        return new[:1].upper() + new[1:] if token[:1].isupper() else new

    def _other_word(self, word: str, free: dict[int, list[str]]) -> str | None:
        """Take a word of a similar length that stands in no text with this one; each word replaces at most one."""
        mine = self._with[word]
        for length in sorted(free, key=lambda length: (abs(length - len(word)), length)):
            if abs(length - len(word)) > max(1, len(word) // 3):
                break
            for at, other in enumerate(free[length]):
                if mine.isdisjoint(self._with[other]):
                    return free[length].pop(at)
        return None

    def _made_up(self, word: str) -> str:
        """Return a word of the same length that is in none of the texts, from letters of the same alphabet."""
        letters = self._letters[_alphabet(word[0])]
        for _ in range(100):
            made = "".join(self._rng.choice(letters) for _ in word)
            if made not in self._with and made not in FUNCTION_WORDS:
                return made
        return "".join(self._rng.choice(letters) for _ in range(len(word) + 4))

    def _other_number(self, number: str) -> str:
        """Return a number with as many digits that is in none of the texts if there is one, else another one."""
        low, high = (0, 9) if len(number) == 1 else (10 ** (len(number) - 1), 10 ** len(number) - 1)
        others = [str(self._rng.randint(low, high)) for _ in range(50)]
        if len(number) == 1:
            others += [str(digit) for digit in self._rng.sample(range(10), 10)]
        mine = self._with[number]
        apart = (other for other in others if other != number and mine.isdisjoint(self._with.get(other, ())))
        unlike = (other for other in others if other != number)
        return next((other for other in others if other not in self._with), None) or next(apart, None) or next(unlike)

    def _other_sign(self, sign: str) -> str:
        return self._rng.choice([other for other in "+=<>~^|$←→↑↓★☆♠♣♥♦" if other != sign])


def _alphabet(letter: str) -> str:
    return unicodedata.name(letter, "LATIN").partition(" ")[0]


def _alphabets(letters: Iterable[str]) -> dict[str, str]:
    """Return alphabet -> letters to make words of: the usual ones, and of others those that occur."""
    found: dict[str, set[str]] = defaultdict(set)
    for letter in letters:
        found[_alphabet(letter)].add(letter)
    usual = {"LATIN": "abcdefghijklmnopqrstuvwxyz", "CYRILLIC": "абвгдежзийклмнопрстуфхцчшщыьэюя"}
    return {name: usual.get(name, "".join(sorted(own)) + "abcdefghijklmnopqrstuvwxyz") for name, own in found.items()}
