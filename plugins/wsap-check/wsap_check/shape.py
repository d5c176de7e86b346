"""Checks of the five members and of what they return."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from wsap_check.play import RandomPlayer, Table, baseline, settle, walk
from wsap_check.steps import Step, first_difference, fresh_text, place, text_of
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.errors import WireError
from wsap_core.protocol import ActionDef, ActionResult, ActionSpace, Observation, ParamDef, Part
from wsap_core.protocol.base import wire_type
from wsap_core.protocol.subset import check_schema
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.untrusted import strip_control
from wsap_core.worlds.legality import check_action, index_actions

_MEMBERS = ("game_description", "action_space", "observe", "act", "reset")
_KEPT = 50


@check(acts=False)
async def members(notes: Notes, subject: Subject) -> None:
    """The five members exist and return the right types."""
    table = Table(subject)
    face: Any = table.seat.face  # whatever an author wrote
    for name in _MEMBERS:
        if not hasattr(face, name):
            notes.error(f"There is no member {name!r}; a game has {', '.join(_MEMBERS)}.")
            return
    for name in ("game_description", "action_space"):
        if inspect.isawaitable(getattr(face, name)) or inspect.isroutine(getattr(face, name)):
            notes.error(f"{name} is a method; it must be a property or an attribute.")
    description = face.game_description
    if not isinstance(description, str) or not description.strip():
        notes.error("game_description is empty; say what the game is and what it is about.")
    elif len(description) > 4 * subject.text_limit:
        notes.warn(f"game_description has {len(description)} characters; it is part of every prompt.")
    if not isinstance(face.action_space, ActionSpace):
        notes.error(f"action_space is a {type(face.action_space).__name__}, not an ActionSpace.")
    if not subject.can("multi-seat"):
        first: Any = await settle(table.world.adapter.reset(), subject)
        if not isinstance(first, Observation):
            notes.error(f"reset() returned a {type(first).__name__}, not an Observation.")
    await table.begin()
    observation: Any = await settle(face.observe(), subject)
    if not isinstance(observation, Observation):
        notes.error(f"observe() returned a {type(observation).__name__}, not an Observation.")


@check()
async def play(notes: Notes, subject: Subject) -> None:
    """Random play completes: nothing raises, and no seat waits forever."""
    if not await walk(subject, 1):
        notes.error("No seat could take a single step.", place(subject.seed, 0, 0))


@check()
async def action_space(notes: Notes, subject: Subject) -> None:
    """The action space is well-formed and never changes."""
    table = await Table(subject).begin()
    for seat in table.seats:
        space = seat.face.action_space
        if not space.actions:
            notes.error("The action space is empty.")
        for name in sorted({n for n in space.names if space.names.count(n) > 1}):
            notes.error(f"The action {name!r} is declared twice.")
        for definition in space.actions:
            _look_at_action(notes, definition)
        before = text_of(space)
        default = seat.default_action()
        if default is not None and (reason := check_action(default, index_actions(seat.action_space))[1]):
            notes.error(f"The default action is not a legal one: {reason}")
        await table.play(RandomPlayer(2), min(20, subject.steps))
        if text_of(seat.face.action_space) != before:
            notes.error(
                "The action space changed while playing; it is declared once. "
                "Say what is possible now in available_actions.",
                table.where(seat),
            )


def _look_at_action(notes: Notes, definition: ActionDef) -> None:
    name = definition.name
    if not name or name != name.strip() or len(name.split()) > 1 or strip_control(name) != name:
        notes.error(f"The action name {name!r} has spaces or control characters in it, or nothing at all.")
    if not definition.description.strip():
        notes.warn(f"The action {name!r} has no description; agents see nothing but its name.")
    names = [p.name for p in definition.parameters]
    for parameter in definition.parameters:
        if names.count(parameter.name) > 1:
            notes.error(f"{name} declares the parameter {parameter.name!r} twice.")
        if problem := _wrong_parameter(parameter):
            notes.error(f"{name}, parameter {parameter.name!r}: {problem}")


def _wrong_parameter(parameter: ParamDef) -> str | None:
    if parameter.schema is not None:
        return check_schema(parameter.schema)
    choices = parameter.choices()
    if choices is not None and ("" in choices or len(set(choices)) < len(choices)):
        return f"the enumeration {parameter.spec!r} has an empty or repeated word."
    return None if parameter.name.strip() else "it has no name."


@check()
async def values(notes: Notes, subject: Subject) -> None:
    """Observations and results have the right types, are finite, and survive the wire unchanged."""
    codec = subject.codec()
    for step in await walk(subject, 3):
        for problem in _wrong_result(step.result):
            notes.error(problem, step.where, about=problem)
        _travel(notes, codec, step.before, step.where)
        _travel(notes, codec, step.result, step.where)


def _wrong_result(result: Any) -> Iterator[str]:
    # Any: the types are what is asked.
    if not isinstance(result.success, bool):
        yield f"result.success is a {type(result.success).__name__}, not true or false."
    if not isinstance(result.done, bool):
        yield f"result.done is a {type(result.done).__name__}, not true or false."
    if not isinstance(result.message, str):
        yield f"result.message is a {type(result.message).__name__}, not text."
    reward = result.reward
    if isinstance(reward, bool) or not (isinstance(reward, int | float) or hasattr(reward, "dtype")):
        yield f"result.reward is a {type(reward).__name__}, not a number."
    elif not math.isfinite(reward):
        yield f"result.reward is {reward}; rewards are finite numbers."
    if not all(isinstance(name, str) for name in result.achievements):
        yield "result.achievements holds something other than names."
    if not isinstance(result.observation, Observation):
        yield f"result.observation is a {type(result.observation).__name__}, not an Observation."


def _travel(notes: Notes, codec: Codec, value: Observation | ActionResult, where: str) -> None:
    base: type = Observation if isinstance(value, Observation) else ActionResult
    for part in _parts(value):
        tag = wire_type(type(part))
        if tag is not None and codec.lookup(tag) is not type(part):
            name = type(part).__name__
            notes.error(
                f"{name} is not among the spec's wire_types, so that nobody else can read what it adds.",
                where,
                about=name,
            )
            return
    try:
        text = dumps(value)
        again: Any = codec.loads(base, text)
    except WireError as error:
        notes.error(str(error), where, about=str(error)[:60])
        return
    if dumps(again) != text or type(again) is not type(value):
        notes.error(f"A {type(value).__name__} is not the same after a trip over the wire.", where, about="lossy")


def _parts(value: Any) -> Iterator[Part]:
    # Any: whatever is in an observation.
    if isinstance(value, Part):
        yield value
    if is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from _parts(getattr(value, f.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _parts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)


@check()
async def text(notes: Notes, subject: Subject) -> None:
    """Every observation has a text within the limit and without control characters."""
    for step in await walk(subject, 4):
        shown: Any = step.result.observation.to_text()
        if not isinstance(shown, str) or not shown.strip():
            notes.error("to_text() gives nothing.", step.where, about="empty")
        elif len(shown) > subject.text_limit:
            much = f"to_text() gives {len(shown)} characters, and the limit is {subject.text_limit}"
            notes.error(f"{much}; leave out or sum up what matters least.", step.where, about="long")
        elif strip_control(shown) != shown:
            raw = "to_text() gives control characters; what others wrote goes through single_line()."
            notes.error(raw, step.where, about="raw")


@check()
async def observing(notes: Notes, subject: Subject) -> None:
    """Observing changes nothing, and past observations never change."""
    kept: list[tuple[Observation, str, str]] = []
    table = await Table(subject).begin()

    def keep(step: Step) -> None:
        if len(kept) < _KEPT:
            kept.extend((o, fresh_text(o), step.where) for o in (step.before, step.result.observation))

    once = await table.play(RandomPlayer(5), subject.steps, each=keep)
    for observation, before, where in kept:
        if fresh_text(observation) != before:
            notes.error(
                "An observation changed after it was handed out: it shares something mutable with the game. "
                "Give each observation its own dicts and lists.",
                where,
                about="shared",
            )
    if len(table.seats) > 1:
        return  # what a seat sees may change with what others do between two looks
    await _observe_often(notes, subject, once)


async def _observe_often(notes: Notes, subject: Subject, once: list[Step]) -> None:
    table = await Table(subject).begin()
    seat = table.seat
    observed: list[Step] = []
    player = RandomPlayer(5)
    while len(observed) < len(once) and not seat.done:
        looks = [fresh_text(await seat.observe()) for _ in range(3)]
        if len(set(looks)) > 1:
            notes.error("observe() twice in a row gives two different observations.", table.where())
            return
        observed += await table.play(player, 1)
    if not subject.can("seed"):
        return
    if found := first_difference(await baseline(subject, 5, len(once)), observed):
        notes.error(f"Observing more often changes the game: {found[0]}.", found[1])


@check()
async def state_after(notes: Notes, subject: Subject) -> None:
    """The observation in a result is what observe() returns next."""
    if len((table := await Table(subject).begin()).seats) > 1:
        raise NothingToCheck("with several seats, others may act in between")
    steps = min(subject.steps, 200)
    player = RandomPlayer(6)
    highest = -1
    for _ in range(steps):
        trace = await table.play(player, 1)
        if not trace:
            break
        step, now = trace[-1], await table.seat.observe()
        if text_of(now) != text_of(step.result.observation):
            notes.error("The result's observation is not the state after the action.", step.where)
            return
        if now.step < highest:
            notes.error(f"observation.step went back from {highest} to {now.step} within an episode.", step.where)
            return
        highest = now.step
