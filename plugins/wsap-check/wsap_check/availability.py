"""Checks of available_actions against what the game really carries out."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

from wsap_check.play import RandomPlayer, Table, fill, offered, own_actions, walk
from wsap_check.steps import Step
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.errors import SnapshotError

CHANCE = "chance"
"""The type of event by which a game says that an available action failed by bad luck."""

_PROBES = 12
"""States of a game with snapshots in which every single action is tried."""

_TRIES = 8
"""Attempts after which an action that depends on its parameters, or on others, should have worked once."""


@check()
async def unavailable(notes: Notes, subject: Subject) -> None:
    """An action listed as unavailable does not succeed, and the list says why."""
    steps = await _attempts(subject)
    listed = False
    for step in steps:
        declared = {a.name for a in step.before.available_actions or ()}
        listed = listed or bool(declared)
        entry = step.before.is_available(step.action.name)
        if entry is None or entry.available:
            continue
        if not entry.reason.strip():
            notes.error(f"{entry.name} is listed as unavailable without a reason.", step.where, about=entry.name)
        if step.result.success:
            notes.error(
                f"{entry.name} was listed as unavailable ({entry.reason}) and succeeded: {step.result.message}",
                step.where,
                about=f"worked {entry.name}",
            )
    if not listed:
        raise NothingToCheck("its observations list no available actions, so that all are")


@check()
async def available(notes: Notes, subject: Subject) -> None:
    """An action listed as available is carried out.

    An action that the observation lists as available (or does not speak of) must not come back
    with `success=False`. Where chance decides, the game reports success and tells in the message
    what came of it, or it refuses with an event of the type "chance". An action with parameters,
    and any action in a world where all act at once, may fail now and then, but not always.
    """
    shared = subject.can("multi-seat") and subject.spec.timing in ("simultaneous", "phased")
    outcomes: dict[str, Counter[bool]] = defaultdict(Counter)
    first: dict[str, Step] = {}
    for step in await _attempts(subject):
        entry = step.before.is_available(step.action.name)
        if entry is not None and not entry.available:
            continue
        unlucky = any(e.type == CHANCE for e in step.result.observation.recent_events)
        if step.result.success or unlucky:
            outcomes[step.action.name][True] += 1
            continue
        outcomes[step.action.name][False] += 1
        first.setdefault(step.action.name, step)
        if not shared and not step.action.parameters:
            said = "was listed as available" if entry is not None else "was not listed as unavailable"
            notes.error(
                f"{step.action.name} {said} and was refused: {step.result.message or '(no message)'}",
                step.where,
                about=step.action.name,
            )
    for name, count in outcomes.items():
        if count[False] >= _TRIES and not count[True]:
            step = first[name]
            message = f"{name} was available {count[False]} times and never worked: {step.result.message}"
            notes.error(message, step.where, about=name)


@check()
async def availability_list(notes: Notes, subject: Subject) -> None:
    """The list of available actions names declared actions, each once."""
    declared = {seat.agent_id: set(seat.action_space.names) for seat in Table(subject).seats}
    for step in await walk(subject, 7):
        names = [a.name for a in step.before.available_actions or ()]
        for name in names:
            if name not in declared[step.seat]:
                notes.error(f"available_actions lists {name!r}, which is not declared.", step.where, about=name)
            if names.count(name) > 1:
                notes.error(f"available_actions lists {name!r} twice.", step.where, about=f"twice {name}")


async def _attempts(subject: Subject) -> list[Step]:
    """Return many single actions: random play, and where it can be gone back, every action in some states."""
    steps = await walk(subject, 8, "any")
    if subject.can("snapshot") and len(Table(subject).seats) == 1:
        steps += await _every_action(subject)
    return steps


async def _every_action(subject: Subject) -> list[Step]:
    table = await Table(subject).begin()
    found: list[Step] = []
    generator = random.Random(9)
    player = RandomPlayer(9)
    for _ in range(_PROBES):
        seat = table.seat
        if seat.done:
            await table.next_episode()
        saved, before = table.world.snapshot(), await seat.observe()
        for definition in own_actions(seat):
            action = fill(offered(definition, before), generator)
            result = await seat.act(action)
            found.append(Step(table.seed, table.episode, before.step, seat.agent_id, before, action, result))
            try:
                table.world.restore(saved)
            except SnapshotError:
                return found  # the checks of snapshots will say so
            await seat.observe()
        await table.play(player, max(1, subject.steps // _PROBES))
    return found
