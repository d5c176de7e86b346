"""Ask models for their beliefs after a game: each question once, also across restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wsap_core.errors import WireError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model import DEFAULT_SAMPLING, Backend, JsonConstraint, Message, Reply, Request, Sampling, collect
from wsap_core.seams.model_errors import ConstraintError, ContextTooSmallError
from wsap_tossim.tournament.journal import Journal
from wsap_tossim.tournament.questions import ANSWER, Question, percentages, schema
from wsap_tossim.tournament.spending import packed, unpacked

__all__ = ["Answer", "Answers", "Manner", "answer", "manner_of"]

KEPT = 4000
"""Characters of an answer that are kept."""


@dataclass(frozen=True)
class Manner:
    """How a seat's model is asked in the game, so that it is asked for its beliefs in the same way."""

    system: str = ""
    """Its system message: the rules, its role, its persona."""
    sampling: Sampling = DEFAULT_SAMPLING
    thinking: bool | None = None
    options: Mapping[str, Mapping[str, Any]] | None = None
    """The provider's options."""
    bound: bool = True
    """Whether its replies are bound to a form where they can be."""


def manner_of(events: Sequence[Mapping[str, Any]], seat: str, own: Mapping[str, Any]) -> Manner:
    """Return how a seat was asked in a recorded run: by its first call; the usual way if it never was.

    Args:
        events: of the run.
        seat: whose.
        own: the options of its agent.
    """
    bound = str(own.get("constrain", "yes")).strip().lower() not in ("no", "false", "off", "0")
    for event in events:
        if event["kind"] == "call" and event["seat"] == seat:
            body = event["body"]
            first = body["messages"][0] if body["messages"] else {}
            content = first.get("content")
            system = content if first.get("role") == "system" and isinstance(content, str) else ""
            return Manner(system, Sampling(**body["sampling"]), body["thinking"], body["options"], bound)
    return Manner(bound=bound)


@dataclass(frozen=True)
class Answer:
    """The answer to a question."""

    evil: Mapping[int, float]
    """Player -> how likely it is held for an enemy; only those of whom the answer says something readable."""
    usage: Usage


class Answers:
    """The answers of a tournament, kept so that no question is asked twice.

    Args:
        journal: where they are.

    Raises:
        WireError: a line of it is damaged.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[tuple[int, int, int], Answer] = {}
        for number, row in enumerate(journal.rows, start=1):
            try:
                evil = {int(n): float(chance) for n, chance in row["evil"].items()}
                self._known[int(row["game"]), int(row["day"]), int(row["player"])] = Answer(
                    evil, unpacked(row["usage"])
                )
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise WireError(f"Line {number} of the answers is damaged: {type(error).__name__}: {error}.") from error

    def get(self, game: int, asked: Question) -> Answer | None:
        """Return the answer that was given before, or None."""
        return self._known.get((game, asked.day, asked.player))

    def add(self, game: int, asked: Question, given: Answer, text: str) -> None:
        """Keep an answer; it is on the disk when this returns."""
        row = {"game": game, "day": asked.day, "player": asked.player}
        evil = {str(n): chance for n, chance in sorted(given.evil.items())}
        self._journal.add({**row, "evil": evil, "usage": packed(given.usage), "text": text[:KEPT]})
        self._known[game, asked.day, asked.player] = given

    def spent(self, game: int) -> dict[int, Usage]:
        """Return what the answers of a game took, by player."""
        found: dict[int, Usage] = {}
        for (of, _, player), given in self._known.items():
            if of == game:
                found[player] = found.get(player, NO_USAGE) + given.usage
        return found


async def answer(backend: Backend, manner: Manner, asked: Question, names: Sequence[str]) -> tuple[Answer, str]:
    """Ask a model, bound to the form of an answer where it can be, and return the answer and its text.

    A question that does not fit into the model's context is one without an answer.

    Raises:
        BackendError: it can't be asked, or a limit is reached.
    """
    messages = [Message("system", manner.system)] if manner.system else []
    messages.append(Message("user", asked.text))
    usual = manner.sampling.max_tokens
    most = None if usual is None else max(usual, 40 + ANSWER * len(asked.about))
    can = manner.bound and backend.abilities.json_schema
    constraint = JsonConstraint(schema(asked.about, names), "beliefs") if can else None
    request = Request(
        messages,
        constraint=constraint,
        sampling=replace(manner.sampling, max_tokens=most),
        thinking=manner.thinking,
        options=manner.options or {},
        purpose="beliefs",
    )
    try:
        reply = await _bound_or_not(backend, request)
    except ContextTooSmallError:
        return Answer({}, NO_USAGE), ""
    return Answer(percentages(reply.text, asked.about, names), reply.usage), reply.text


async def _bound_or_not(backend: Backend, request: Request) -> Reply:
    try:
        return await collect(backend, request)
    except ConstraintError:
        return await collect(backend, replace(request, constraint=None))


async def ask_day(
    game: int,
    asked: Sequence[tuple[Question, Backend, Manner]],
    names: Sequence[str],
    answers: Answers,
) -> dict[int, Answer]:
    """Ask all the models of a game about one day, side by side, and return their answers by player.

    What is answered is kept even where another one can't be asked.

    Raises:
        BackendError: one can't be asked, or a limit is reached.
    """

    async def one(question: Question, backend: Backend, manner: Manner) -> Answer:
        known = answers.get(game, question)
        if known is None:
            known, text = await answer(backend, manner, question, names)
            answers.add(game, question, known, text)
        return known

    found = await asyncio.gather(*(one(*each) for each in asked), return_exceptions=True)
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return {
        question.player: result
        for (question, _, _), result in zip(asked, found, strict=True)
        if isinstance(result, Answer)
    }
