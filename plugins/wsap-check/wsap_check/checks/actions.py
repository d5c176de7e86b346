"""Checks of actions: availability, tools, and the refusal of invalid ones."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from typing import Any

from wsap_check.play import RandomPlayer, Table, fill, offered, own_actions, settle, walk
from wsap_check.raised import called, describe
from wsap_check.steps import Step, place
from wsap_check.subject import Fault, Notes, NothingToCheck, Subject, at_once, check
from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace
from wsap_core.worlds import Seat
from wsap_core.worlds.legality import check_action
from wsap_core.worlds.mailbox import SHARED_NAMES

CHANCE = "chance"
"""The type of the event that reports the failure of an available action by chance."""

_PROBES = 12
"""States of a game with snapshots in which every action is tried."""

_TRIES = 8
"""Attempts after which an action that depends on its parameters, or on others, should have succeeded once."""

_PLACES = 3
"""Moments of the game at which invalid actions are tried."""

_HELP = "wsap_core.worlds.legality.check_action finds invalid actions."


@check()
async def availability_list(notes: Notes, subject: Subject) -> None:
    """The list of available actions names declared actions, each once."""
    declared = {seat.agent_id: set(seat.action_space.names) for seat in Table(subject).seats}
    for step in await walk(subject, 7):
        names = [a.name for a in step.before.available_actions or ()]
        for name in names:
            known = name in declared[step.seat]
            notes.expect(known, f"available_actions lists {name!r}, which is not declared.", step, name)
            notes.expect(names.count(name) == 1, f"available_actions lists {name!r} twice.", step, f"twice {name}")


@check()
async def unavailable(notes: Notes, subject: Subject) -> None:
    """An action listed as unavailable does not succeed, and the list says why."""
    listed = False
    for step in await _attempts(subject):
        listed = listed or bool(step.before.available_actions)
        entry = step.before.is_available(step.action.name)
        if entry is None or entry.available:
            continue
        name = entry.name
        notes.expect(entry.reason.strip(), f"{name} is listed as unavailable without a reason.", step, name)
        worked = f"{name} was listed as unavailable ({entry.reason}) and succeeded: {step.result.message}"
        notes.expect(not step.result.success, worked, step, f"worked {name}")
    if not listed:
        raise NothingToCheck("its observations do not list available actions")


@check()
async def available(notes: Notes, subject: Subject) -> None:
    """An action listed as available is carried out.

    An action that the observation lists as available (or does not mention) must not return
    `success=False`. Where chance decides, the game reports success with the outcome in the message, or
    fails with an event of the type "chance". An action with parameters, and any action in a world where
    all seats act at once, may fail sometimes, but not always.
    """
    shared = subject.can("multi-seat") and not at_once(subject)
    outcomes: dict[str, Counter[bool]] = defaultdict(Counter)
    first: dict[str, Step] = {}
    for step in await _attempts(subject):
        name, entry = step.action.name, step.before.is_available(step.action.name)
        if entry is not None and not entry.available:
            continue
        worked = bool(step.result.success) or any(e.type == CHANCE for e in step.result.observation.recent_events)
        outcomes[name][worked] += 1
        if worked:
            continue
        first.setdefault(name, step)
        said = "was listed as available" if entry is not None else "was not listed as unavailable"
        refused = f"{name} {said} and was refused: {step.result.message or '(no message)'}"
        notes.expect(shared or step.action.parameters, refused, step, name)
    for name, count in outcomes.items():
        if count[False] >= _TRIES and not count[True]:
            never = f"{name} was available {count[False]} times and never worked: {first[name].result.message}"
            notes.error(never, first[name], name)


async def _attempts(subject: Subject) -> list[Step]:
    """Return many single actions: random play, and with snapshots, every action in some states."""
    steps = await walk(subject, 8, "any")
    if not subject.can("snapshot") or len(Table(subject).seats) > 1:
        return steps
    table, generator, player = await Table(subject).begin(), random.Random(9), RandomPlayer(9)
    for _ in range(_PROBES):
        seat = table.seat
        if seat.done:
            await table.next_episode()
        saved, before = table.world.snapshot(), await seat.observe()
        for definition in own_actions(seat):
            action = fill(offered(definition, before), generator)
            result = await seat.act(action)
            steps.append(Step(table.seed, table.episode, before.step, seat.agent_id, before, action, result))
            try:
                table.world.restore(saved)
            except SnapshotError:
                return steps  # the checks of snapshots report it
            await seat.observe()
        await table.play(player, max(1, subject.steps // _PROBES))
    return steps


@check()
async def tools(notes: Notes, subject: Subject) -> None:
    """A tool returns at once, takes no game step, and ends no turn or episode."""
    table = await Table(subject).begin()
    names = {action.name for seat in table.seats for action in seat.action_space.actions if action.is_tool}
    if not names:
        raise NothingToCheck("it declares no actions of the category 'tool'")
    for seat in table.seats:
        default = seat.default_action()
        if default is not None and default.name in names:
            notes.error(f"The default action is the tool {default.name}, which ends no turn.", about="default")
    last: dict[str, tuple[int, int, str]] = {}
    for step in await walk(subject, 12):
        name, before, now = step.action.name, step.before.step, step.result.observation.step
        episode, number, tool = last.get(step.seat, (-1, 0, ""))
        # With several seats others may have acted since.
        if tool and episode == step.episode and before != number and len(table.seats) == 1:
            where = place(step.seed, step.episode, step.number, step.seat)
            notes.error(f"After {tool} observation.step was {before}, before {number}.", where, tool)
        last[step.seat] = (step.episode, before, name if name in names else "")
        if name in names:
            took = f"{name} is a tool, and changed observation.step from {before} to {now}."
            notes.expect(now == before, took, step, name)
            notes.expect(not step.result.done, f"{name} is a tool, and ended the episode.", step, "done")
    if len(table.seats) > 1:
        await _at_once(notes, subject)


async def _at_once(notes: Notes, subject: Subject) -> None:
    """Use tools in one seat while all others decide."""
    table = await Table(subject).begin()
    generator = random.Random(13)
    for seat in table.seats:
        observation = await settle(seat.face.observe(), subject, limit=0.1)
        if observation is None:
            continue  # it is not its turn
        closed = {a.name for a in observation.available_actions or () if not a.available}
        for definition in seat.action_space.actions:
            if not definition.is_tool or definition.name in closed:
                continue
            action = fill(definition, generator)
            if await settle(seat.face.act(action), subject, limit=0.1) is None:
                waits = f"{definition.name} is a tool, and waits for the other seats."
                notes.error(waits, table.where(seat, action), definition.name)
                return


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
    """Yield actions that a space does not declare."""
    known = SHARED_NAMES.union(space.names)
    first = space.names[0] if space.names else "act"
    names = (f"{first}x", first.upper(), "no-such-action", "", "__class__", "x" * 5_000, "\x1b[2J\u202e")
    yield from (Action(name) for name in names if name not in known)


def misfits(definition: ActionDef) -> Iterator[Action]:
    """Yield actions of that name with invalid parameters, which `check_action` does not accept either."""
    name = definition.name
    whole = {p.name: _plausible(p.json_schema()) for p in definition.parameters if not p.optional}
    given: list[dict[str, Any]] = [{**whole, "no_such_parameter": 1}]
    for parameter in definition.parameters:
        if not parameter.optional:
            given.append({k: v for k, v in whole.items() if k != parameter.name})
        wrong: tuple[Any, ...] = ("no-such-choice", -(10**9), 10**9, 0.5, True, [], {"a": {}}, None, "\x00", [[[]]])
        given += [{**whole, parameter.name: value} for value in wrong]
    yield from (action for action in (Action(name, g) for g in given) if check_action(action, {name: definition})[1])


def _plausible(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    return schema.get("minimum", "north") if schema.get("type", "string") in ("string", "integer", "number") else None


async def _moments(subject: Subject) -> AsyncIterator[tuple[Table, Seat]]:
    """Yield a table and a seat whose turn it is, at a few moments of the game."""
    table = await Table(subject).begin()
    for moment in range(_PLACES):
        if moment:
            steps = max(3, subject.steps // 10)
            if len(table.seats) > 1:  # a world of several seats that is cut off can't go on
                table, steps = await Table(subject).begin(), moment * steps
            await table.play(RandomPlayer(10 + moment), steps, cut=True)
            if table.over:
                await table.next_episode()
        if (seat := await table.ready()) is not None:
            yield table, seat


async def _nonsense(notes: Notes, table: Table, seat: Seat, action: Action, kind: str) -> None:
    where = table.where(seat, Action(action.name[:40], action.parameters))
    before = await table.seen(seat)
    try:
        result: Any = await table.tried(seat, action)
    except Exception as error:
        message = f"{describe(error, called('act', action))}; it must refuse. {_HELP}"
        notes.error(message, where, f"raised {kind}")
        return
    if result is None:
        raise Fault(f"act() accepted it and waits for other seats; it must refuse. {_HELP}", where)
    if not isinstance(result, ActionResult):
        notes.error(f"act() returned a {type(result).__name__}.", where, f"type {kind}")
    elif result.success:
        notes.error(f"It succeeded: {result.message or '(no message)'} {_HELP}", where, f"success {kind}")
    else:
        said, unpaid = result.message.strip(), not (result.reward or result.achievements)
        notes.expect(said, "It was refused without a message that says why.", where, f"silent {kind}")
        notes.expect(unpaid, "A refusal brought a reward or an achievement.", where, f"paid {kind}")
        notes.expect(await table.seen(seat) == before, "A refused action changed the state.", where, f"changed {kind}")
