"""Checks between the seats of one world: observations, messages and turns."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from wsap_check.play import RandomPlayer, Table, fill, own_actions, refused, settle, spin
from wsap_check.steps import fresh_text
from wsap_check.subject import Notes, NothingToCheck, Subject, check, several_seats, timed
from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol import Action, ActionResult, Observation
from wsap_core.seams.game import HasTeams, Renders
from wsap_core.worlds import Seat

_ROUNDS = (0, 3)
"""Steps after which the world is examined."""
_EPISODES = 4
"""Episodes in which rewards are added up and secrets are varied."""
_MOVES = 20
"""Moves in each of them after which secrets are varied."""


def _with_others(subject: Subject) -> str:
    return "" if subject.spec.seats[1] > 1 else "there is one seat"


@check(several_seats)
async def shared_world(notes: Notes, subject: Subject) -> None:
    """A world of several seats is played through its seats, and no seat can reset it."""
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
            notes.error(f"{name} must raise a UsageError in a game of several seats, but {did}.")


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
    """Compare what the others observe while one seat's choice is pending with what they observed before."""
    if (chooser := await table.ready()) is None:
        return
    action = fill(own_actions(chooser)[index], random.Random(index))
    choice = action.name if index >= 0 else "nothing"
    pending = asyncio.ensure_future(chooser.act(action)) if index >= 0 else None
    await spin(5)
    try:
        for other in (seat for seat in table.seats if seat is not chooser):
            view, name = await table.seen(other), other.agent_id
            before, earlier = seen.setdefault(name, (view, choice))
            otherwise = f"when {chooser.agent_id} has chosen {choice} than when it has chosen {earlier}"
            leak = f"{name} observes something else {otherwise}, although the round is not resolved."
            notes.expect(before == view, leak, table.where(other), "leak")
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)


@check(_with_others, timed("seats do not act in turn", "alternating"))
async def turns(notes: Notes, subject: Subject) -> None:
    """A seat waits or is refused when it is not its turn."""
    for steps in _ROUNDS:
        table = await Table(subject).begin()
        await table.play(RandomPlayer(81), steps * len(table.seats))
        if table.over:
            return
        ready = [s for s in table.seats if await table.now(s.face.observe(), 0.1) is not None]
        everybody = "All seats observe at once; with alternating timing, observe() must wait for the turn."
        if not notes.expect(ready, "It is nobody's turn.", table.where()):
            return
        if not notes.expect(len(ready) < len(table.seats), everybody, table.where()):
            return
        before = await table.seen(ready[0])
        for seat in (s for s in table.seats if s not in ready):
            own = own_actions(seat)
            action = Action(next((a for a in own if not a.is_tool), own[0]).name)  # tools need no turn
            result = await settle(seat.face.act(action), subject, limit=0.1)
            acted = result is not None and result.success
            where = table.where(seat, action)
            notes.expect(not acted, "An action succeeded when it was not the seat's turn.", where, "acted")
        unchanged = await table.seen(ready[0]) == before
        notes.expect(unchanged, "An action out of turn changed what another seat sees.", table.where(), "changed")


def _on_the_base(subject: Subject) -> str:
    return "" if isinstance(subject.world().adapter, RoundGame) else "the game is not a RoundGame"


@check(_on_the_base)
async def legal_moves(notes: Notes, subject: Subject) -> None:
    """A seat that is to move has a legal action, and every action that `legal` returns is declared."""
    table = await Table(subject).begin()
    game = cast(RoundGame, table.world.adapter)

    def look(where: str) -> None:
        for seat in (mover for mover in game.to_move() if not game.out(mover)):
            names = [offer if isinstance(offer, str) else offer.name for offer in game.legal(seat)]
            notes.expect(names, f"{seat} is to move, but legal({seat!r}) returns nothing.", where, "nothing")
            if wrong := [name for name in names if game.action_space.find(name) is None]:
                notes.error(f"legal({seat!r}) names {wrong[0]!r}, which is not declared.", where, wrong[0])

    look(table.where())
    await table.play(RandomPlayer(85), min(subject.steps, 100), each=lambda step: look(step.where))


def _says_zero_sum(subject: Subject) -> str:
    zero = several_seats(subject) == "" and getattr(subject.world().adapter, "zero_sum", False) is True
    return "" if zero else "the game does not set `zero_sum = True`"


@check(_says_zero_sum)
async def zero_sum(notes: Notes, subject: Subject) -> None:
    """The rewards of all seats in an episode add up to 0."""
    whole = 0
    for player in range(_EPISODES):
        table = await Table(subject, subject.seed + player).begin()
        trace = await table.play(RandomPlayer(83 + player, "available"), subject.steps, episodes=True)
        for _, episode in itertools.groupby(trace, key=lambda step: step.episode):
            played = list(episode)
            if len({step.seat for step in played if step.result.done}) < len(table.seats):
                continue  # cut off
            whole += 1
            paid = {seat.agent_id: 0.0 for seat in table.seats}
            for step in played:
                paid[step.seat] += step.result.reward
            total, each = math.fsum(paid.values()), ", ".join(f"{seat} {pay:g}" for seat, pay in paid.items())
            notes.expect(abs(total) <= 1e-6, f"An episode pays {total:g} in all, not 0: {each}.", played[-1], "sum")
    if not whole:
        raise NothingToCheck(f"no episode was over within {subject.steps} steps")


def _names_a_secret(subject: Subject) -> str:
    if several_seats(subject):
        return "there is one seat"
    game = type(subject.world().adapter)
    named = any(names(game, name) for name in ("vary_secret", "vary_hidden"))
    return "" if named else "the game has no `vary_secret(seat, rng)` or `vary_hidden(rng)` that names one"


def names(game: type, name: str) -> bool:
    """Return whether a game has a method, such as `vary_secret`, of its own."""
    return getattr(game, name, None) not in (None, getattr(RoundGame, name))


@check(_names_a_secret)
async def secrets(notes: Notes, subject: Subject) -> None:
    """What the author declares as secret or hidden is not visible to the seats that may not notice it."""
    varied = 0
    for episode in range(_EPISODES):
        table = await Table(subject, subject.seed + episode).begin()
        copies = [await Table(subject, table.seed).begin() for _ in range(2 if subject.can("snapshot") else 0)]
        choose, pending = RandomPlayer(84 + episode, "available"), dict[str, asyncio.Future[ActionResult]]()
        try:
            for moves in range(_MOVES):
                where = f"seed {table.seed}, after {moves} moves"
                if copies:
                    varied += await _told_later(notes, table, copies, moves, where)
                varied += await _vary(notes, table, random.Random(moves), where)
                if not await _move(table, choose, pending):
                    break  # it is over
        finally:
            await _dropped(pending)
    if not varied:
        raise NothingToCheck("there was nothing to vary")


async def _move(
    table: Table, choose: Callable[[Seat, Observation], Action], pending: dict[str, asyncio.Future[ActionResult]]
) -> bool:
    """Let the next seat act, without waiting for its result; return whether the game goes on."""
    for seat in table.seats:
        task = pending.get(seat.agent_id)
        if task is not None and not task.done():
            continue
        if (seen := await table.now(seat.face.observe(), 0.01)) is not None:
            pending[seat.agent_id] = asyncio.ensure_future(_act(seat, choose(seat, seen)))
            await spin(5)
            return not any(task.done() and task.result().done for task in pending.values())
    return False


async def _act(seat: Seat, action: Action) -> ActionResult:
    result = seat.face.act(action)
    return await result if inspect.isawaitable(result) else result


async def _vary(notes: Notes, table: Table, rng: random.Random, where: str) -> int:
    """Vary each seat's secret in turn, and as often what is hidden; compare what those see that may not notice, and
    return the number of secrets."""
    found = 0
    before: dict[str, dict[str, str]] = {}  # what each seat is shown; without those that must be asked again
    for owner in table.seats:
        for vary in _ways(table, owner.agent_id):
            before = {seat.agent_id: before.get(seat.agent_id) or await _shown(table, seat) for seat in table.seats}
            state = table.world.snapshot() if table.world.can_snapshot else b""
            if (told := vary(rng)) is None:
                continue
            found += 1
            what, may_notice, call = told
            if strange := set(may_notice) - set(before):
                notes.error(f"{call} names {min(strange)!r}, which is no seat.", where)
            if state and state == table.world.snapshot():
                notes.warn(f"{call} changed nothing in the snapshot.", where)
            after = {
                seat.agent_id: await _shown(table, seat) for seat in table.seats if seat.agent_id not in may_notice
            }
            for name, now in after.items():
                was = before[name]
                if part := next((part for part in was if was[part] != now[part]), None):
                    differs = f"when it varies, {part} has {_difference(was[part], now[part])}"
                    notes.error(f"{name} sees {what}: {differs}.", where, f"{name} {what} {part}")
            before = after
    return found


_Varied = tuple[str, Collection[str], str]
"""What was varied, who may notice it, and the call."""


def _ways(table: Table, owner: str) -> list[Callable[[random.Random], _Varied | None]]:
    """Return functions that vary what the author declares, and return None if there was nothing to vary."""
    game = cast(Any, table.world.adapter)  # Any: anything with these methods

    def secret(rng: random.Random) -> _Varied | None:
        call = f"vary_secret({owner!r}, rng)"
        return (f"{owner}'s secret", (owner,), call) if game.vary_secret(owner, rng) else None

    def hidden(rng: random.Random) -> _Varied | None:
        may_notice = game.vary_hidden(rng)
        return None if may_notice is None else ("what is hidden from it", tuple(may_notice), "vary_hidden(rng)")

    ways = (("vary_secret", secret), ("vary_hidden", hidden))
    return [way for name, way in ways if names(type(game), name)]


async def _told_later(notes: Notes, table: Table, copies: Sequence[Table], moves: int, where: str) -> int:
    """Make the same moves in two copies of a world, of which one has another secret, and warn about what is different
    for others only afterwards: it was written down meanwhile. Return the number of secrets."""
    saved, found = table.world.snapshot(), 0
    owner = table.seats[(moves + table.seed) % len(table.seats)].agent_id
    for number in range(len(_ways(table, owner))):
        for copy in copies:
            copy.world.restore(saved)
        if (told := _ways(copies[1], owner)[number](random.Random(moves))) is None:
            continue
        found += 1
        what, may_notice, _ = told
        others = [seat.agent_id for seat in table.seats if seat.agent_id not in may_notice]
        sights = [await _sights_onwards(copies[0], None, moves)]
        sights.append(await _sights_onwards(copies[1], sights[0].made, moves))
        if sights[0].made != sights[1].made or sights[0].over or sights[1].over:
            continue  # the secret decides who may do what, or the end shows everything
        for name in others:
            (was, now), (one, other) = ([sight.shown[i][name] for sight in sights] for i in (0, 1))
            if was == now and (part := next((part for part in one if one[part] != other[part]), None)):
                said = f"{name} is told {what} by the moves that follow: {part} has "
                said += f"{_difference(one[part], other[part])}. Is it meant to be known then?"
                notes.error(said, where, f"{name} {part} later", severity="warning")
    return found


@dataclass
class _Sights:
    """What the seats of a world are shown before and after some moves."""

    shown: list[dict[str, dict[str, str]]]
    made: list[tuple[str, Action]]
    over: bool = False


async def _sights_onwards(table: Table, given: Sequence[tuple[str, Action]] | None, number: int) -> _Sights:
    """Let each seat move once, at random or as `given`, and return what all are shown."""
    player, pending = RandomPlayer(number, "available"), dict[str, asyncio.Future[ActionResult]]()
    sights = _Sights([{seat.agent_id: await _shown(table, seat) for seat in table.seats}], [])

    def choose(seat: Seat, seen: Observation) -> Action:
        theirs = player(seat, seen) if given is None else dict(given[len(sights.made) :][:1]).get(seat.agent_id)
        sights.made.append((seat.agent_id, theirs or Action("")))
        return theirs or Action("")

    try:
        for _ in table.seats:
            if not await _move(table, choose, pending):
                sights.over = True
                break
        sights.shown.append({seat.agent_id: await _shown(table, seat) for seat in table.seats})
    finally:
        await _dropped(pending)
    return sights


async def _dropped(pending: Mapping[str, asyncio.Future[ActionResult]]) -> None:
    for task in pending.values():
        task.cancel()
    await asyncio.gather(*pending.values(), return_exceptions=True)


def _difference(one: str, other: str) -> str:
    """Return the first difference between two different texts, with a few characters around it."""
    first = next(i for i in itertools.count() if one[i : i + 1] != other[i : i + 1])
    part = slice(max(0, first - 30), first + 50)
    return f"{one[part]!r} or {other[part]!r}"


async def _shown(table: Table, seat: Seat) -> dict[str, str]:
    """Return everything that a seat sees now, part by part, even while it waits for its turn."""
    face, game = seat.face, table.world.adapter
    result = await table.tried(seat, Action("no such action"))
    shown = {"game_description": face.game_description, "action_space": fresh_text(face.action_space)}
    if isinstance(result, ActionResult):  # a refusal contains what the seat sees
        shown |= {"the observation": fresh_text(result.observation), "its text": result.observation.to_text()}
        shown["the result"] = fresh_text(replace(result, observation=Observation()))
    if isinstance(face, Renders):
        shown["render()"] = fresh_text(face.render())
    if isinstance(game, RoundGame):  # the contents of its next result
        shown["its pay so far"] = str(game.returns()[seat.agent_id])
        with contextlib.suppress(Exception):  # there may be no message yet
            shown["the message of a result"] = game.message(seat.agent_id, 0.0)
    return shown


@check("messages")
async def messages(notes: Notes, subject: Subject) -> None:
    """Direct and team messages reach their recipients and nobody else."""
    low, high = subject.spec.seats
    if low < 2:
        raise NothingToCheck("there is one seat")
    for kind in ("direct", "team", "broadcast"):
        table = await Table(subject, seats=max(low, min(high, 5))).begin()
        await _whisper(notes, table, kind)


async def _whisper(notes: Notes, table: Table, kind: str) -> None:
    speaker, *rest = table.seats
    name, listener, secret = speaker.agent_id, rest[0], f"xyzzy-{kind}-4711"
    adapter = table.world.adapter
    teams = {s.agent_id: adapter.team_of(s.agent_id) for s in table.seats} if isinstance(adapter, HasTeams) else {}
    action, hearers = {
        "direct": (Action("tell", {"to": listener.agent_id, "text": secret}), [listener]),
        "team": (Action("tell_team", {"text": secret}), [s for s in rest if teams.get(s.agent_id) == teams.get(name)]),
        "broadcast": (Action("say", {"text": secret}), rest),
    }[kind]
    declared = speaker.action_space.find(action.name) is not None
    if not notes.expect(declared, f"There is no action {action.name!r}; a world with messages has a `mailbox`."):
        return
    result = await speaker.act(action)
    if not result.success:
        refusal = f"A message from one seat to another was refused: {result.message}"
        notes.expect(kind != "direct", refusal, table.where(speaker))
        return
    heard = await _who_hears(table, secret)
    for seat in rest:
        leak = f"{seat.agent_id} receives a {kind} message from {name} that is not for it."
        notes.expect(seat in hearers or seat.agent_id not in heard, leak, table.where(seat), f"leak {kind}")
    # A seat that is out while the others play on need not hear them.
    missing = [s.agent_id for s in hearers if s.agent_id not in heard and (table.over or not s.done)]
    notes.expect(not missing, f"A {kind} message from {name} does not reach {', '.join(missing)}.", table.where())


async def _who_hears(table: Table, secret: str) -> set[str]:
    """Return the seats whose observations or results contain the secret within the next rounds."""
    said: list[tuple[str, object]] = []
    for step in await table.play(RandomPlayer(82, "available"), 3 * len(table.seats)):
        said += [(step.seat, step.before), (step.seat, step.result)]
    for seat in table.seats:
        with contextlib.suppress(TimeoutError):
            said.append((seat.agent_id, await asyncio.wait_for(seat.observe(), 0.2)))
    return {seat for seat, what in said if secret in fresh_text(what)}
