"""A skin for a game: its vocabulary is replaced by made-up words in everything that the model reads, and only there.

Texts are renamed around the model's backend: prompts, memories and constraints in requests, and replies back. Agent,
log, hashes and scores keep the game's words.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.seams.constraints import CallConstraint, ChooseConstraint, Constraint, JsonConstraint, RegexConstraint
from wsap_core.seams.model import Abilities, Backend, Draft, FunctionCall, Message, OnText, Reply, Request, TextPart

_WORD = re.compile(r"[A-Za-z]+")
_KEPT = frozenset({
    *("action", "actions", "params", "reasoning", "times", "until", "name", "arguments", "type", "object", "string"),
    *("number", "integer", "boolean", "array", "enum", "const", "properties", "required", "items", "description"),
    *("title", "null", "true", "false"),
})  # fmt: skip
"""Words of replies and of JSON Schema, which are not renamed."""
_ONSETS, _VOWELS, _CODAS = (
    ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "dr", "kl", "pl", "st", "tr"],
    "aeiou",
    ["b", "d", "g", "k", "l", "m", "n", "p", "r", "t", "x"],
)


@dataclass(frozen=True)
class Lexicon:
    """A one-to-one mapping of a game's words to made-up words."""

    words: Mapping[str, str]
    """The game's word, in lower case -> the made-up one."""
    _forth: Mapping[str, str] = field(init=False, repr=False, default_factory=dict)
    _back: Mapping[str, str] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def drawn(cls, vocabulary: Iterable[str], seed: str) -> Lexicon:
        """Return made-up words of similar length, determined by the seed and the vocabulary."""
        own = sorted({word.lower() for word in vocabulary if _WORD.fullmatch(word)} - _KEPT)
        rng = random.Random(f"{seed}\0{' '.join(own)}")
        forms = {form for word in own for form in _plurals(word)}
        drawn: dict[str, str] = {}
        taken = {*forms, *_KEPT}
        for word in own:
            while not taken.isdisjoint(_plurals(made := _made_up(rng, len(word)))):
                pass
            drawn[word] = made
            taken.update(_plurals(made))
        return cls(drawn)

    def there(self, text: str) -> str:
        """Return a text with the game's words renamed, keeping plurals and case."""
        return _WORD.sub(lambda found: _in_case(self._forth.get(found[0].lower()), found[0]), text)

    def back(self, text: str) -> str:
        """Return a text with the made-up words renamed back."""
        return _WORD.sub(lambda found: _in_case(self._back.get(found[0].lower()), found[0]), text)

    def __post_init__(self) -> None:
        pairs = [
            pair for word, made in self.words.items() for pair in zip(_plurals(word), _plurals(made), strict=False)
        ]
        object.__setattr__(self, "_forth", dict(reversed(pairs)))
        object.__setattr__(self, "_back", {b: a for a, b in reversed(pairs)})


class Skinned:
    """A backend around a model that knows only the made-up words and receives no pictures."""

    def __init__(self, inner: Backend, lexicon: Lexicon) -> None:
        self._inner, self._lexicon = inner, lexicon

    @property
    def model(self) -> str:
        """The full address."""
        return self._inner.model

    @property
    def abilities(self) -> Abilities:
        """The model's abilities without images."""
        return replace(self._inner.abilities, images=False)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply to the renamed request, renamed back; raises the errors of the model's `complete`."""
        there = self._lexicon.there
        renamed = replace(
            request,
            messages=[_message(message, self._lexicon) for message in request.messages],
            prefill=there(request.prefill),
            stop=[there(stop) for stop in request.stop],
            constraint=None if request.constraint is None else _constraint(request.constraint, self._lexicon),
        )
        back = self._lexicon.back

        def shown(draft: Draft) -> None:
            if on_text is not None:
                on_text(Draft(back(draft.text), back(draft.thinking), draft.waiting))

        reply = await self._inner.complete(renamed, None if on_text is None else shown)
        return replace(
            reply,
            text=back(reply.text),
            thinking=back(reply.thinking),
            calls=tuple(FunctionCall(back(call.name), _renamed(call.arguments, back)) for call in reply.calls),
        )

    async def aclose(self) -> None:
        """Close the model."""
        await self._inner.aclose()


def _message(message: Message, lexicon: Lexicon) -> Message:
    if message.calls:
        calls = [FunctionCall(lexicon.there(c.name), _renamed(c.arguments, lexicon.there)) for c in message.calls]
        message = replace(message, calls=calls)
    if isinstance(message.content, str):
        return replace(message, content=lexicon.there(message.content))
    parts = [replace(p, text=lexicon.there(p.text)) for p in message.content if isinstance(p, TextPart)]
    return replace(message, content=parts)


def _constraint(constraint: Constraint, lexicon: Lexicon) -> Constraint:
    if isinstance(constraint, ChooseConstraint):
        return ChooseConstraint([lexicon.there(option) for option in constraint.options])
    if isinstance(constraint, RegexConstraint):
        return RegexConstraint(lexicon.there(constraint.pattern))
    if isinstance(constraint, JsonConstraint):
        return replace(constraint, schema=_renamed(constraint.schema, lexicon.there))
    return CallConstraint([
        replace(f, name=lexicon.there(f.name), description=lexicon.there(f.description),
                parameters=_renamed(f.parameters, lexicon.there))
        for f in constraint.functions
    ])  # fmt: skip


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    # Any: JSON.
    if isinstance(value, str):
        return rename(value)
    if isinstance(value, Mapping):
        return {rename(key): _renamed(member, rename) for key, member in value.items()}
    return [_renamed(member, rename) for member in value] if isinstance(value, list | tuple) else value


def _plurals(word: str) -> tuple[str, str, str]:
    return word, f"{word}s", f"{word[:-1]}ies" if word.endswith("y") else f"{word}es"


def _made_up(rng: random.Random, length: int) -> str:
    made = ""
    while len(made) < max(3, length - 1):
        made += rng.choice(_ONSETS) + rng.choice(_VOWELS)
    return made + rng.choice(_CODAS)


def _in_case(word: str | None, like: str) -> str:
    if word is None:
        return like
    return word.upper() if like.isupper() and len(like) > 1 else word.capitalize() if like[0].isupper() else word
