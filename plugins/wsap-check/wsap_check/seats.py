"""Checks between the seats of one world: what each sees, hears and may do."""

from __future__ import annotations

import asyncio
import contextlib
import random

from wsap_check.play import RandomPlayer, Table, fill, own_actions, refused, settle
from wsap_check.steps import fresh_text
from wsap_check.subject import Notes, NothingToCheck, Subject, check, several_seats, timed
from wsap_core.protocol import Action
from wsap_core.seams.game import HasTeams

_ROUNDS = (0, 3)
"""Steps after which the world is looked into."""


@check(several_seats)
async def shared_world(notes: Notes, subject: Subject) -> None:
    """A world of several seats is played through its seats, and no seat resets it."""
    table = await Table(subject).begin()
    world, seat = table.world.adapter, table.seat
    first = Action(own_actions(seat)[0].name)
    asked = {
        "observe() of the world itself": world.observe,
        "act() of the world itself": lambda: world.act(first),
        "reset() of one seat": seat.face.reset,
    }
    for name, call in asked.items():
        if did := await refused(call):
            notes.error(f"{name} must be refused with a UsageError where there are several seats, but {did}.")


@check(several_seats, timed("seats do not act at the same time", "simultaneous"))
async def hidden_choices(notes: Notes, subject: Subject) -> None:
    """A seat's choice stays hidden until the round is resolved."""
    for steps in _ROUNDS:
        options = own_actions((await Table(subject).begin()).seat)
        seen: dict[str, tuple[str, str]] = {}
        for index in range(-1, len(options)):
            table = await Table(subject).begin()
            await table.play(RandomPlayer(80), steps * len(table.seats))
            if table.over:
                return
            await _look_while_pending(notes, table, index, seen)


async def _look_while_pending(notes: Notes, table: Table, index: int, seen: dict[str, tuple[str, str]]) -> None:
    """Compare what the others observe while the first seat's choice waits with what they saw before."""
    chooser, others = table.seats[0], table.seats[1:]
    await chooser.observe()
    definition = own_actions(chooser)[index]
    action = fill(definition, random.Random(index))
    pending = asyncio.ensure_future(chooser.act(action)) if index >= 0 else None
    for _ in range(5):
        await asyncio.sleep(0)
    try:
        for other in others:
            view = await table.seen(other)
            choice = action.name if index >= 0 else "nothing"
            before, earlier = seen.setdefault(other.agent_id, (view, choice))
            if before != view:
                notes.error(
                    f"{other.agent_id} sees something else when {chooser.agent_id} has chosen {choice} than when it "
                    f"has chosen {earlier}, although the round is not resolved.",
                    table.where(other),
                    about="leak",
                )
    finally:
        if pending is not None:
            pending.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await pending


@check(several_seats, timed("seats do not act in turn", "alternating"))
async def turns(notes: Notes, subject: Subject) -> None:
    """A seat waits or is refused when it is not its turn."""
    for steps in _ROUNDS:
        table = await Table(subject).begin()
        await table.play(RandomPlayer(81), steps * len(table.seats))
        if table.over:
            return
        ready = [s for s in table.seats if await settle(s.face.observe(), subject, limit=0.1) is not None]
        if not ready:
            notes.error("It is nobody's turn.", table.where())
            return
        if len(ready) == len(table.seats):
            notes.error("All seats observe at once; in alternating time observe() waits for the turn.", table.where())
            return
        before = await table.seen(ready[0])
        for seat in (s for s in table.seats if s not in ready):
            own = own_actions(seat)
            action = Action(next((a for a in own if not a.is_tool), own[0]).name)  # looking up needs no turn
            result = await settle(seat.face.act(action), subject, limit=0.1)
            if result is not None and result.success:
                notes.error("A seat acted without its turn and succeeded.", table.where(seat, action), about="acted")
        if await table.seen(ready[0]) != before:
            notes.error("An action without a turn changed what another seat sees.", table.where(), about="changed")


@check("messages")
async def messages(notes: Notes, subject: Subject) -> None:
    """Direct and team messages reach their recipients and nobody else."""
    low, high = subject.spec.seats_with(subject.config)
    if low < 2:
        raise NothingToCheck("there is one seat")
    for kind in ("direct", "team", "broadcast"):
        table = await Table(subject, seats=max(low, min(high, 5))).begin()
        await _whisper(notes, table, kind)


async def _whisper(notes: Notes, table: Table, kind: str) -> None:
    speaker, listener = table.seats[0], table.seats[1]
    secret = f"xyzzy-{kind}-4711"
    adapter = table.world.adapter
    teams = {s.agent_id: adapter.team_of(s.agent_id) for s in table.seats} if isinstance(adapter, HasTeams) else {}
    action = {
        "direct": Action("tell", {"to": listener.agent_id, "text": secret}),
        "team": Action("tell_team", {"text": secret}),
        "broadcast": Action("say", {"text": secret}),
    }[kind]
    if speaker.action_space.find(action.name) is None:
        notes.error(f"There is no action {action.name!r}; a world with messages has a `mailbox`.")
        return
    result = await speaker.act(action)
    if not result.success:
        if kind == "direct":
            notes.error(f"A message from one seat to another was refused: {result.message}", table.where(speaker))
        return
    team = [s for s in table.seats[1:] if teams.get(s.agent_id) == teams.get(speaker.agent_id)]
    hearers = {"direct": [listener], "team": team, "broadcast": table.seats[1:]}[kind]
    heard = await _who_hears(table, secret)
    for seat in table.seats[1:]:
        if seat.agent_id in heard and seat not in hearers:
            notes.error(
                f"{seat.agent_id} hears a {kind} message from {speaker.agent_id} that is not for it.",
                table.where(seat),
                about=f"leak {kind}",
            )
    missing = [s.agent_id for s in hearers if s.agent_id not in heard]
    if missing:
        notes.error(f"A {kind} message from {speaker.agent_id} never reaches {', '.join(missing)}.", table.where())


async def _who_hears(table: Table, secret: str) -> set[str]:
    """Return the seats in whose observations or results the secret turns up within the next rounds."""
    heard: set[str] = set()

    def listen(seat: str, said: object) -> None:
        if secret in fresh_text(said):
            heard.add(seat)

    for step in await table.play(RandomPlayer(82, "available"), 3 * len(table.seats)):
        listen(step.seat, step.before)
        listen(step.seat, step.result)
    for seat in table.seats:
        with contextlib.suppress(TimeoutError):
            listen(seat.agent_id, await asyncio.wait_for(seat.observe(), 0.2))
    return heard
