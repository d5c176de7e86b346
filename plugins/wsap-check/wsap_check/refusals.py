"""Checks of invalid actions: refused with a result, and without effect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from wsap_check.play import RandomPlayer, Table
from wsap_check.raised import called, describe
from wsap_check.subject import Fault, Notes, NothingToCheck, Subject, check
from wsap_core.protocol import AVATAR_ACTIONS, Action, ActionDef, ActionResult, ActionSpace
from wsap_core.worlds import MESSAGE_ACTIONS, Seat
from wsap_core.worlds.legality import check_action

_PLACES = 3
"""Moments of the game at which nonsense is tried."""

_HELP = "wsap_core.worlds.legality.check_action tells what is wrong with an action."


@check()
async def undeclared_actions(notes: Notes, subject: Subject) -> None:
    """An undeclared action is refused with a result, and changes nothing."""
    async for table, seat in _moments(subject):
        for action in undeclared(seat.action_space):
            await _nonsense(notes, table, seat, action, "undeclared")


@check()
async def bad_parameters(notes: Notes, subject: Subject) -> None:
    """Missing, unknown and invalid parameters are refused with a result, and change nothing."""
    tried = False
    async for table, seat in _moments(subject):
        for definition in seat.face.action_space.actions:
            for action in misfits(definition):
                tried = True
                await _nonsense(notes, table, seat, action, "parameters")
    if not tried:
        raise NothingToCheck("there are no actions")


def undeclared(space: ActionSpace) -> Iterator[Action]:
    """Give actions that a space does not declare, from the near miss to the absurd."""
    known = {*space.names, *AVATAR_ACTIONS.names, *MESSAGE_ACTIONS.names}
    first = space.names[0] if space.names else "act"
    names = (f"{first}x", first.upper(), "no-such-action", "", "__class__", "x" * 5_000, "\x1b[2J\u202e")
    yield from (Action(name) for name in names if name not in known)


def misfits(definition: ActionDef) -> Iterator[Action]:
    """Give actions of that name whose parameters are not as declared; nothing that could be read as if they were."""
    name = definition.name
    declared = {name: definition}
    whole = {p.name: _plausible(p.json_schema()) for p in definition.parameters if not p.optional}
    given: list[dict[str, Any]] = [{**whole, "no_such_parameter": 1}]
    for parameter in definition.parameters:
        if not parameter.optional:
            given.append({k: v for k, v in whole.items() if k != parameter.name})
        wrong: tuple[Any, ...] = ("no-such-choice", -(10**9), 10**9, 0.5, True, [], {"a": {}}, None, "\x00", [[[]]])
        given += [{**whole, parameter.name: value} for value in wrong]
    yield from (action for action in (Action(name, g) for g in given) if check_action(action, declared)[1])


def _plausible(schema: dict[str, Any]) -> Any:
    # Any: parameters have every kind of value.
    if "enum" in schema:
        return schema["enum"][0]
    return schema.get("minimum", "north") if schema.get("type", "string") in ("string", "integer", "number") else None


async def _moments(subject: Subject) -> AsyncIterator[tuple[Table, Seat]]:
    """Give a table and a seat whose turn it is, at a few moments of the game."""
    table = await Table(subject).begin()
    for moment in range(_PLACES):
        if moment:
            await table.play(RandomPlayer(10 + moment), max(3, subject.steps // 10))
            if table.over:
                await table.next_episode()
        if (seat := await table.ready()) is not None:
            yield table, seat


async def _nonsense(notes: Notes, table: Table, seat: Seat, action: Action, about: str) -> None:
    where = table.where(seat, Action(action.name[:40], action.parameters))
    before = await table.seen(seat)
    try:
        result: Any = await table.tried(seat, action)
    except Exception as error:
        message = f"{describe(error, called('act', action))}, where it should have refused. {_HELP}"
        notes.error(message, where, about=f"raised {about}")
        return
    if result is None:
        raise Fault(f"act() took it and waits for other seats, where it should have refused. {_HELP}", where)
    if not isinstance(result, ActionResult):
        notes.error(f"act() returned a {type(result).__name__}.", where, about=f"type {about}")
        return
    if result.success:
        notes.error(f"It succeeded: {result.message or '(no message)'} {_HELP}", where, about=f"success {about}")
    elif not result.message.strip():
        notes.error("It was refused without a message; say what is wrong.", where, about=f"silent {about}")
    if not result.success and (result.reward or result.achievements):
        notes.error("A refusal brought a reward or an achievement.", where, about=f"paid {about}")
    if not result.success and await table.seen(seat) != before:
        notes.error("A refused action changed the state.", where, about=f"changed {about}")
