"""Ask models for their beliefs after a game, each question once even across restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wsap_core.errors import WireError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model import DEFAULT_SAMPLING, Backend, JsonConstraint, Message, Reply, Request, Sampling
from wsap_core.seams.model_errors import ConstraintError, ContextTooSmallError
from wsap_eval.kit import Journal
from wsap_tossim.tournament.ledger import packed_json
from wsap_tossim.tournament.questions import ANSWER, Question, percentages, schema
from wsap_tossim.tournament.spending import packed, unpacked

__all__ = ["Answer", "Answers", "Manner", "answer", "manner_of"]

KEPT = 4000
"""Maximum characters of a stored answer."""


@dataclass(frozen=True)
class Manner:
    """The request settings of a seat's model, used in the game and for its beliefs."""

    system: str = ""
    """The system message: rules, role, persona."""
    sampling: Sampling = DEFAULT_SAMPLING
    thinking: bool | None = None
    options: Mapping[str, Mapping[str, Any]] | None = None
    """Provider options."""
    bound: bool = True
    """Whether replies are constrained to a schema if the backend can."""


def manner_of(events: Sequence[Mapping[str, Any]], seat: str, own: Mapping[str, Any]) -> Manner:
    """Return a seat's request settings from its first recorded call and its agent's options, or defaults."""
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
    """Player -> believed probability that it is an enemy; only players with a readable value."""
    usage: Usage


class Answers:
    """The stored answers of a tournament, so that no question is asked twice.

    Raises:
        WireError: a line of the journal is damaged.
    """

    def __init__(self, journal: Journal[Mapping[str, Any]]) -> None:
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
        """Return the stored answer, or None."""
        return self._known.get((game, asked.day, asked.player))

    def add(self, game: int, asked: Question, given: Answer, text: str) -> None:
        """Store an answer; it is on disk when this returns."""
        row = {"game": game, "day": asked.day, "player": asked.player}
        evil = {str(n): chance for n, chance in sorted(given.evil.items())}
        self._journal.add(packed_json({**row, "evil": evil, "usage": packed(given.usage), "text": text[:KEPT]}))
        self._known[game, asked.day, asked.player] = given

    def spent(self, game: int) -> dict[int, Usage]:
        """Return the usage of a game's answers, by player."""
        found: dict[int, Usage] = {}
        for (of, _, player), given in self._known.items():
            if of == game:
                found[player] = found.get(player, NO_USAGE) + given.usage
        return found


async def answer(backend: Backend, manner: Manner, asked: Question, names: Sequence[str]) -> tuple[Answer, str]:
    """Ask a model, constrained to the answer's schema if it can be, and return the answer and its text.

    The answer is empty if the question does not fit into the model's context.

    Raises:
        BackendError: the request failed, or a limit is reached.
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
        return await backend.complete(request)
    except ConstraintError:
        return await backend.complete(replace(request, constraint=None))


async def ask_day(
    game: int,
    asked: Sequence[tuple[Question, Backend, Manner]],
    names: Sequence[str],
    answers: Answers,
) -> dict[int, Answer]:
    """Ask all models of a game about one day concurrently, and return their answers by player.

    Answers are stored even if another request fails.

    Raises:
        BackendError: a request failed, or a limit is reached.
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
