"""Sentences from grammar rules: enumerated without repetition, with case and gender agreement."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from tomllib import loads
from zlib import crc32

from wsap_sandbox.model import LANGUAGES

_RULE = re.compile(r"<(\w+)>")
_SLOT = re.compile(r"\{(\w+)(?:\.([gdaip]))?(?::([^{}]*))?\}")
_CASES = {"g": 1, "d": 2, "a": 3, "i": 4, "p": 5}
_GENDERS = "mfnp"


@dataclass(frozen=True, slots=True)
class Form:
    """The inflected forms of a name."""

    cases: tuple[str, ...]
    """Nominative; in Russian also genitive, dative, accusative, instrumental, prepositional."""
    gender: str = "m"

    def case(self, letter: str) -> str:
        """Return the name in the case with this first letter; by default the nominative."""
        at = _CASES.get(letter, 0)
        return self.cases[at] if at < len(self.cases) else self.cases[0]


Slots = Mapping[str, "Form | str"]
Lists = Mapping[str, Sequence[str]]
_Given = tuple[tuple[str, tuple[str, ...]], ...]
"""Hashable `Lists`, for caches."""


class Grammar:
    """The rules of one language; each is a list of strings with references to other rules."""

    def __init__(self, rules: Mapping[str, Sequence[str]]) -> None:
        self.rules = rules
        self._sizes = lru_cache(maxsize=4096)(self._size)

    def with_rules(self, rules: Mapping[str, Sequence[str]]) -> Grammar:
        """Return this grammar with rules added or replaced."""
        return Grammar({**self.rules, **rules}) if rules else self

    def drawn(self, rule: str, rng: random.Random, slots: Slots | None = None, lists: Lists | None = None) -> str:
        """Return a string of a rule with every reference drawn at random, not formatted as a sentence."""
        given = tuple((name, tuple(values)) for name, values in (lists or {}).items() if values)

        def expanded(name: str) -> str:
            text = _RULE.sub(lambda match: expanded(match[1]), rng.choice(self._options(name, given)))
            return text[:1].upper() + text[1:] if name[0].isupper() else text

        return fill(expanded(rule), slots or {})

    def text_drawn(self, rule: str, rng: random.Random, slots: Slots, lists: Lists | None = None) -> str:
        """Return a sentence of a rule with every reference drawn at random."""
        return sentence(self.drawn(rule, rng, slots, lists))

    def text(self, rule: str, number: int, slots: Slots, lists: Lists | None = None) -> str:
        """Return the sentence of a rule with this number.

        Consecutive numbers give sentences that differ in most parts; few repeat before all have occurred.
        `lists` are additional rules for this sentence, such as the character's manner.
        """
        given = tuple((name, tuple(values)) for name, values in (lists or {}).items() if values)
        size = self._sizes(rule, given)
        number = (number * _step(size) + crc32(rule.encode())) % size
        return sentence(fill(self._expanded(rule, number, given), slots))

    def past(self, deed: str, one: Form) -> str:
        """Return an infinitive with what follows it in the past tense, for verbs of the rule `pasts`."""
        for line in self.rules["pasts"]:
            verb, *forms = line.split("|")
            if deed.startswith(f"{verb} "):
                at = min(_GENDERS.find(one.gender), len(forms) - 1)
                return forms[at] + deed[len(verb) :]
        return deed

    def built(self, deed: str) -> str:
        """Return what a place has after a deed that leaves something there; empty for other deeds."""
        for line in self.rules["builds"]:
            verb, has = line.split("|")[:2]
            if deed.startswith(f"{verb} "):
                return has.replace("{x}", deed[len(verb) + 1 :])
        return ""

    def listed(self, names: Sequence[str]) -> str:
        """Return names as a list: "Anna, Luke and Vera"."""
        return f" {self.rules['and'][0]} ".join(filter(None, (", ".join(names[:-1]), names[-1])))

    def phrase(self, rule: str, number: int, slots: Slots) -> str:
        """Return one string of a rule without references, not formatted as a sentence."""
        options = self.rules[rule]
        return fill(options[number % len(options)], slots)

    def phrases(self, rule: str, slots: Slots) -> tuple[str, ...]:
        """Return all strings of a rule without references."""
        return tuple(fill(option, slots) for option in self.rules[rule])

    def _options(self, rule: str, given: _Given) -> Sequence[str]:
        lists = dict(given)
        return lists.get(rule) or lists.get(rule.lower()) or self.rules.get(rule) or self.rules[rule.lower()]

    def _size(self, rule: str, given: _Given) -> int:
        options = self._options(rule, given)
        return len(options) * max(
            math.prod(self._sizes(name, given) for name in _RULE.findall(option)) for option in options
        )

    def _expanded(self, rule: str, number: int, given: _Given) -> str:
        options = self._options(rule, given)
        number, at = divmod(number, len(options))
        parts = _RULE.split(options[at])
        for i in range(1, len(parts), 2):
            name = parts[i]
            size = self._sizes(name, given)
            number, own = divmod(number, size)
            parts[i] = self._expanded(name, (own + at) % size, given)
            if name[0].isupper():
                parts[i] = parts[i][:1].upper() + parts[i][1:]
        return "".join(parts)


def fill(template: str, slots: Slots) -> str:
    """Return a template with its braces filled; missing names become empty."""

    def filled(match: re.Match[str]) -> str:
        name, case, words = match.groups()
        value = slots.get(name, "")
        if words is not None:
            options = words.split("|")
            at = _GENDERS.find(value.gender if isinstance(value, Form) else "m")
            return options[at] if at < len(options) else options[-1]
        return value.case(case or "") if isinstance(value, Form) else value

    return _SLOT.sub(filled, template) if "{" in template else template


def sentence(text: str) -> str:
    """Return text as a sentence: normalized spaces, a capital at the start, a full stop at the end."""
    text = " ".join(text.split()).replace(" ,", ",").replace(" .", ".").strip()
    at = next((i for i, c in enumerate(text) if c.isalpha()), 0)
    text = text[:at] + text[at : at + 1].upper() + text[at + 1 :]
    return text if not text or text[-1] in ".!?…" or text.endswith((".»", "!»", "?»", '."', '!"', '?"')) else f"{text}."


def one_of(texts: Sequence[str], number: int) -> Sequence[str]:
    """Return the text with this number as a list of one; none repeats before all have occurred."""
    stride = next((step for step in (7, 5, 3) if len(texts) % step), 1)
    return texts[number * stride % len(texts) :][:1]


def number_of(tick: int, one: str) -> int:
    """Return the sentence number of a place or a character in a tick; it grows by one a tick."""
    return tick + crc32(one.encode())


@lru_cache(maxsize=4096)
def _step(size: int) -> int:
    step = max(1, round(size * 0.6180339887))
    while math.gcd(step, size) != 1:
        step += 1
    return step


@cache
def grammar_of(language: str) -> Grammar:
    """Return the rules of a language; English if it is unknown."""
    file = resources.files(__package__) / f"{language if language in LANGUAGES else 'en'}.toml"
    return Grammar(loads(file.read_text("utf-8")))
