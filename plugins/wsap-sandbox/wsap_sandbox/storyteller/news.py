"""News: what characters have heard and told, as quotations in their memories; and the speech in anybody's intention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from wsap_sandbox.languages import words_of
from wsap_sandbox.model import Cell
from wsap_sandbox.phrases.grammar import Form, Slots, sentence
from wsap_sandbox.storyteller.lore import Lore

Kind = Literal["news", "tale", "invite"]

_QUOTED = re.compile(r'(?<=: )(?:"([^"]{3,})"|«([^«»]{3,})»)')
_ANY_QUOTED = re.compile(r'["“„«]([^"“”„«»]{2,})["”“»]')
_ENDS = re.compile(r"(?<=[.!?…])\s+")
LONGEST = 140
"""Maximum characters of what is remembered of somebody's words."""
LONGEST_SPEECH = 180
"""Maximum characters of somebody's words in an event."""


@dataclass(frozen=True, slots=True)
class News:
    """Something that a character has heard or told."""

    text: str
    kind: Kind
    fresh: bool
    """Whether it is in a memory of its own, not only in the summary."""
    heard: int
    told: int
    around: str
    """The sentences around the quotations: who said it, and to whom."""

    def names(self, one: Form) -> bool:
        """Whether a person told it, heard it from this character, or appears in it."""
        return any(form and form in f"{self.around} {self.text}" for form in one.cases)


def key_of(text: str) -> str:
    """Return what is the same in two quotations of one sentence."""
    return text.strip(" .!?…").casefold()


def news_of(cells: Sequence[Cell], summary: str, lore: Lore) -> list[News]:
    """Return what a memory contains, newest first."""
    found: dict[str, News] = {}
    for cell in cells:
        if said := whispered(cell, lore):
            _note(found, News(said, "news", True, 1, 0, ""))
        for part, own in ((cell.tried, True), (cell.came_of_it, False)):
            for head, said in _quotations(part):
                _note(found, News(said, _kind(head, lore), True, int(not own), int(own), head))
    told = lore.grammar.rules["told_words"]
    for head, said in _quotations(summary):
        own = any(word in head.casefold() for word in told)
        _note(found, News(said, _kind(head, lore), False, int(not own), int(own), head))
    return list(found.values())


def whispered(cell: Cell, lore: Lore) -> str:
    """Return what a voice said that only this character heard; empty if none did."""
    head = words_of(lore.language).say("heard", what="")
    heard = cell.came_of_it.startswith(head)
    return shortened(_ENDS.split(cell.came_of_it[len(head) :])[0], LONGEST) if heard else ""


def notes(text: str) -> list[str]:
    """Return the sentences of a memory that contain a quotation, each with it."""
    found, end = [], 0
    for match in _QUOTED.finditer(text):
        head = _ENDS.split(text[end : match.start()].lstrip(" .,"))[-1]
        found.append(sentence(head + match.group()))
        end = match.end()
    return found


def plain(text: str) -> str:
    """Return a memory without the sentences that contain a quotation."""
    return " ".join(one for one in _ENDS.split(text) if not re.search('["«»]', one)).strip()


def _note(found: dict[str, News], one: News) -> None:
    key = key_of(one.text)
    old = found.get(key)
    if old is not None:
        around = f"{old.around} {one.around}"
        one = News(old.text, old.kind, old.fresh, old.heard + one.heard, old.told + one.told, around)
    if key:
        found[key] = one


def _quotations(text: str) -> Iterator[tuple[str, str]]:
    """The quotations of a text, each with the words before it."""
    end = 0
    for match in _QUOTED.finditer(text):
        yield text[end : match.start()], match[1] or match[2]
        end = match.end()


def _kind(head: str, lore: Lore) -> Kind:
    words = head.casefold()
    kinds: tuple[Kind, ...] = ("tale", "invite")
    return next((one for one in kinds if any(word in words for word in lore.grammar.rules[f"{one}_words"])), "news")


# --- writing -------------------------------------------------------------------------------------


def quotable(text: str, language: str) -> str:
    """Return words as they stand in quotation marks: a capital first, and in English a full stop last."""
    said = re.sub('["“”„«»]', "'" if language == "en" else "", " ".join(text.split())).strip()
    at = next((i for i, c in enumerate(said) if c.isalpha()), 0)
    said = (said[:at] + said[at : at + 1].upper() + said[at + 1 :]).rstrip(". ")
    return said if language == "ru" or said[-1:] in "!?…" else f"{said}."


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, cut between words."""
    return text if len(text) <= most else f"{text[: most - 1].rsplit(' ', 1)[0]}…"


def remembered(rule: str, lore: Lore, number: int, slots: Slots, said: str) -> str:
    """Return a sentence of a memory with a quotation."""
    told = quotable(shortened(said, LONGEST), lore.language)
    return sentence(lore.grammar.phrase(rule, number, {**slots, "said": told}))


# --- speech in anybody's intention ---------------------------------------------------------------

_ACTS = {
    "en": re.compile(r"^\W*(?:I(?!'?m\b)\s|I'll|I'd|I'm (?:going|off)|let me\b)", re.IGNORECASE),
    "ru": re.compile(r"^\W*(?:я\s+)?(?:не\s+)?\w+(?:у|ю|ть|ти|усь|юсь)\b", re.IGNORECASE),
}
_STATES = {
    "en": re.compile(
        r"^\W*I(?:'ve|\s+(?:think|know|believe|am|was|have|had|saw|heard|hope|love|hate|need))\b", re.IGNORECASE
    ),
    "ru": re.compile(r"^\W*(?:я\s+)?(?:не\s+)?(?:знаю|думаю|верю|вижу|слышу|люблю|помню|хочу)\b", re.IGNORECASE),
}
_THAT = {"en": re.compile(r"\bthat\s+(.+)$", re.IGNORECASE), "ru": re.compile(r",\s*что\s+(.+)$", re.IGNORECASE)}


def speech_of(intention: str, lore: Lore) -> str:
    """Return the words that somebody says in an intention; empty if it is about something else."""
    code, text = lore.language if lore.language in _ACTS else "en", " ".join(intention.split())
    quoted = _ANY_QUOTED.search(text)
    if quoted:
        return quoted[1].strip()
    words = re.findall(r"[\w']+", text.casefold())[:4]
    says = any(word.startswith(tuple(lore.grammar.rules["say_words"])) for word in words)
    if says:
        after = text.partition(":")[2].strip()
        that = _THAT[code].search(text)
        return after or (that[1] if that else text)
    acts = _ACTS[code].search(text) and not _STATES[code].search(text) and text[-1:] not in "?!"
    return "" if acts else text
