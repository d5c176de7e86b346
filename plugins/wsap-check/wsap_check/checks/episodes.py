"""Checks of episodes: start, end and determinism; and of ticks."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from wsap_check.checks.trajectory import digests, first_different, request_for, trajectories_elsewhere
from wsap_check.play import (
    RandomPlayer,
    Table,
    must_repeat,
    own_actions,
    refused,
    settle,
    undisturbed,
    unless_interrupted,
    walk,
)
from wsap_check.steps import Step, difference_by_seat, first_difference, fresh_text, place, without_biography
from wsap_check.subject import Fault, Notes, NothingToCheck, Subject, at_once, check, other_processes
from wsap_core.errors import WireError
from wsap_core.protocol import AvatarState, EmbodiedObservation
from wsap_core.protocol.ticks import Tick
from wsap_core.protocol.wire import dumps
from wsap_core.seams.game import Influenced, Lives
from wsap_core.worlds import World

_LONGER = 20
"""Factor by which an episode may exceed the usual number of steps until its end."""

_AFTER = 20
"""Actions tried after the end, in addition to one per declared action."""

_PAIRS = 24
"""Seeds with which a used world is compared with a fresh one."""
_PAIR_STEPS = 5
"""Steps of each comparison after the first."""

_PASTS = 4
"""Episodes after whose end a difference that followed an interrupted one is looked for again."""

_SEEDS = 4
_TICKS = 5


@check()
async def done(notes: Notes, subject: Subject) -> None:
    """An episode ends, and done is final: nothing succeeds and nothing changes until the reset."""

    def look(table: Table, step: Step) -> None:
        told = step.result.observation.available_actions or ()
        nothing = len(table.seats) == 1 and told and not any(action.available for action in told)
        unsaid = "No action is possible any more, and the result does not say that the episode is done."
        notes.expect(not nothing or step.result.done, unsaid, step, "unsaid")
        cut = "A result is truncated and not done; truncated says that a limit has ended the episode."
        notes.expect(step.result.done or not step.result.truncated, cut, step, "truncated")

    try:
        table = await play_to_the_end(subject, look)
    except NothingToCheck as endless:
        if not notes.findings:
            notes.warn(f"{str(endless).capitalize()}; evaluations of a game without an end need --steps.")
        return
    choose = RandomPlayer(21, "any")
    for seat in table.seats:
        before = await settle(seat.face.observe(), subject)
        was = fresh_text(before)
        if before is None:
            notes.error("observe() waits forever after the end of the episode.", table.where(seat))
            continue
        for action in [choose(seat, before) for _ in range(_AFTER + len(own_actions(seat)))]:
            where = table.where(seat, action)
            result = await table.tried(seat, action)
            if result is None:
                notes.error("act() waits forever after the end of the episode.", where)
                break
            notes.expect(result.done, "done was true, and is false after another action.", where, "undone")
            notes.expect(not result.success, "An action succeeded after the end of the episode.", where, "success")
            paid = result.reward or result.achievements
            notes.expect(
                not paid, "There was a reward or an achievement after the end of the episode.", where, "reward"
            )
            still = await table.seen(seat) == was
            if not notes.expect(still, "The state changed after the end of the episode.", where, "changed"):
                break


async def play_to_the_end(subject: Subject, look: Callable[[Table, Step], None] = lambda table, step: None) -> Table:
    """Return a table whose episode is over for every seat, after looking at each step; `NothingToCheck` if it takes
    too long."""
    table = await Table(subject).begin()
    limit = _LONGER * max(subject.steps, 1)
    await table.play(RandomPlayer(20, "available"), limit, each=lambda step: look(table, step))
    if not table.over:
        raise NothingToCheck(f"no episode was over within {limit} steps")
    return table


@check()
async def reset(notes: Notes, subject: Subject) -> None:
    """A reset starts a new episode that does not depend on the last one."""
    used = await Table(subject).begin()
    await used.play(RandomPlayer(22), max(20, subject.steps // 4))
    await used.begin(subject.seed + 1)
    if not notes.expect(not used.over, "The episode is over right after a reset.", used.where()):
        return
    observation = used.seat.last_observation or (await settle(used.seat.face.observe(), subject))
    if isinstance(observation, EmbodiedObservation) and observation.avatar.state is AvatarState.DESTROYED:
        notes.error("The avatar is dead right after a reset.", used.where())
    if not subject.can("seed"):
        return
    interrupts = subject.spec.timing == "phased"
    for pair in range(_PAIRS):
        # The first comparison plays on until no seat waits, in some games to their end; the others need not.
        seed, steps, cut = subject.seed + 1 + pair, _PAIR_STEPS if pair else 60, bool(pair) and interrupts
        player = 23 + pair
        try:
            difference, longer = await _beside_a_fresh_world(subject, used, seed, player, steps, cut=cut)
            again = cut and (difference is not None or longer)
        except Exception:
            if not cut:
                raise
            again = True
        for past in range(_PASTS if again else 0):  # Perhaps only because the reset came in the middle of a round.
            used = await Table(subject, subject.seed + past).begin()
            await used.play(RandomPlayer(22 + past), steps)
            difference, longer = await _beside_a_fresh_world(subject, used, seed, player, steps, cut=False)
            interrupts = False
            if difference is not None or longer:
                break
        if difference is not None or longer:
            await must_repeat(subject, 23, 60)
        if not notes.expect_same(difference, f"After reset(seed={seed}) a used world differs from a fresh one: {{}}."):
            return
        if not notes.expect(not longer, "After the same reset one episode is longer than the other.", used.where()):
            return


async def _beside_a_fresh_world(
    subject: Subject, used: Table, seed: int, player: int, steps: int, *, cut: bool
) -> tuple[tuple[str, str] | None, bool]:
    """Return the first difference of an episode in a used world from that in a fresh one, and whether one is longer."""
    # The world is made with that seed, since the constructor may leave something of its own, too.
    fresh = Table(subject, seed)
    for table in (used, fresh):
        table.seed = seed
        await table.begin()
    one, other = [await table.play(RandomPlayer(player), steps, cut=cut) for table in (used, fresh)]
    length = min(len(one), len(other))
    traces = ([_without_lives(step) for step in trace[:length]] for trace in (one, other))
    return first_difference(*traces), len(one) != len(other)


def _without_lives(step: Step) -> Step:
    """Return a step without the avatars' data of earlier episodes."""
    if not isinstance(step.before, EmbodiedObservation) and not isinstance(
        step.result.observation, EmbodiedObservation
    ):
        return step
    result = replace(step.result, observation=without_biography(step.result.observation))
    return replace(step, before=without_biography(step.before), result=result)


@check("seed")
async def first_episode(notes: Notes, subject: Subject) -> None:
    """A fresh world with a seed equals the one after reset(seed)."""
    if len(Table(subject).seats) > 1:
        raise NothingToCheck("worlds of several seats start with a reset")
    other = await undisturbed(subject, 24, 40)
    one = await Table(subject).play(RandomPlayer(24), 40)
    if found := first_difference(one, other):
        await must_repeat(subject, 24, 40)
        notes.warn(f"A world created with a seed differs from the one after reset(seed): {found[0]}.", found[1])


@check("seed")
async def same_seed(notes: Notes, subject: Subject) -> None:
    """The same seed and actions give the same trajectory."""
    different = "The same seed and actions gave two trajectories, which differ in {}. "
    different += "All chance must depend on the seed, and time must be that of the world."
    notes.expect_same(first_difference(await _trace(subject), await _trace(subject)), different)


async def _trace(subject: Subject) -> list[Step]:
    trace = await walk(subject, 31)
    if not trace:
        raise Fault("No seat could take a single step.", place(subject.seed, 0, 0))
    return trace


@check("seed")
async def independent(notes: Notes, subject: Subject) -> None:
    """A world is not affected by other code in its process."""
    if subject.can("multi-seat") and subject.spec.timing == "free":
        raise NothingToCheck("seats act at any time, so that no two runs are alike")

    async def look(subject: Subject, cut: bool | int) -> tuple[str, str] | None:
        alone, again = [await _step_by_step(subject, disturbed=False, cut=cut) for _ in range(2)]
        if difference_by_seat(alone, again):
            raise NothingToCheck("the same seed gives different trajectories, see `same-seed`")
        changed = "Another world in the process, or use of the global random generator, changed the trajectory in {}. "
        changed += "Use context.random, and keep no state in modules or classes."
        found = difference_by_seat(alone, await _step_by_step(subject, disturbed=True, cut=cut))
        return found and (changed.format(found[0]), found[1])

    await unless_interrupted(notes, subject, look)


async def _step_by_step(subject: Subject, *, disturbed: bool, cut: bool | int) -> list[Step]:
    """Return a trace played step by step, with or without other activity in between."""
    beside = await Table(subject, subject.seed + 1).begin() if disturbed else None
    table = await Table(subject).begin()
    player, noise, trace = RandomPlayer(31), RandomPlayer(32), list[Step]()
    state = random.getstate()
    try:
        while len(trace) < subject.steps:
            more = await table.play(player, 1, cut=cut)
            trace += more
            if not more and not table.over:
                break
            if not more:
                await table.next_episode()
            if beside is None:
                continue
            _draw_chance()
            if beside.over:
                await beside.next_episode()
            await beside.play(noise, 1, cut=cut)
    finally:
        random.setstate(state)
    return trace


def _draw_chance() -> None:
    """Use the global random generators."""
    random.random()
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.random()


@check("seed", other_processes)
async def other_process(notes: Notes, subject: Subject) -> None:
    """The same seed gives the same trajectory in another process, whatever its PYTHONHASHSEED."""
    request = request_for(subject)
    here = await _trace(subject)
    played = dict(trajectories_elsewhere(request))
    places = {hash_seed: first_different(digests(here), elsewhere) for hash_seed, elsewhere in played.items()}
    odd = next((hash_seed for hash_seed, position in places.items() if position is not None), None)
    if odd is None:
        return
    await must_repeat(subject, 31, subject.steps, cut=True)
    if len({tuple(elsewhere) for elsewhere in played.values()}) == 1:
        different = "New processes play alike, but differently from this one, from this step on. "
        different += "Keep no state in modules or classes: it remembers the worlds before."
    else:
        different = f"With PYTHONHASHSEED={odd} another process plays differently from this step on. "
        different += "Do not iterate over sets of texts, use hash() or id(), or read the clock."
    notes.error(different, here[min(places[odd] or 0, len(here) - 1)])


@check("seed")
async def seeds_matter(notes: Notes, subject: Subject) -> None:
    """Different seeds give different trajectories."""
    texts = set[str]()
    for cut in (True, False):  # the second time whole episodes, where a seat waits that long
        for offset in range(_SEEDS):
            table = await Table(subject, subject.seed + offset).begin()
            trace = await table.play(RandomPlayer(33), min(subject.steps, 100), cut=cut)
            texts.add("\n".join(step.text() for step in trace))
            if len(texts) > 1:
                return
        texts.clear()
    same = f"Seeds {subject.seed} to {subject.seed + _SEEDS - 1} all give the same trajectory; "
    notes.warn(same + "that is correct only if the game has no chance.")


@check("seed", "multi-seat", at_once)
async def arrival_order(notes: Notes, subject: Subject) -> None:
    """The order in which seats act within a round does not matter."""
    forwards = await undisturbed(subject, 34, subject.steps)
    table = await Table(subject).begin()
    table.seats.reverse()
    backwards = await table.play(RandomPlayer(34), subject.steps)
    changed = "The order in which seats act within a round changes {}. Resolve actions in a fixed order."
    difference = difference_by_seat(forwards, backwards)
    if difference is not None:
        await must_repeat(subject, 34, subject.steps)
    notes.expect_same(difference, changed)


async def _begun(subject: Subject) -> World:
    world = subject.world()
    await world.reset(seed=subject.seed)
    return world


async def _advanced(notes: Notes, subject: Subject, world: World, count: int) -> list[str]:
    """Return ticks, as JSON, of a world whose seats are all free."""
    game, found = cast(Lives, world.adapter), list[str]()
    for _ in range(count):
        try:
            tick = await asyncio.wait_for(game.advance(), 4 * subject.patience)
        except TimeoutError:
            raise Fault("advance() waits for a seat, although none is taken.") from None
        if not isinstance(tick, Tick):
            raise Fault(f"advance() returned a {type(tick).__name__}, not a Tick.")
        try:
            found.append(dumps(tick))
        except WireError as error:
            notes.error(f"A tick can't be encoded: {error}", about="wire")
            return found
        if tick.done:
            break
    return found


@check("lives")
async def ticks(notes: Notes, subject: Subject) -> None:
    """A world that lives goes on without seats, and the same seed gives the same ticks."""
    found = await _advanced(notes, subject, await _begun(subject), _TICKS)
    if subject.can("seed") and found != await _advanced(notes, subject, await _begun(subject), _TICKS):
        notes.error("The same seed gave two different sequences of ticks. All chance must depend on the seed.")
    world = await _begun(subject)
    for number in range(1, len(found) + 1):
        tick = await cast(Lives, world.adapter).advance()
        counted = f"Tick {number} has the number {tick.number}; ticks count from 1."
        notes.expect(tick.number == number, counted, about="number")


@check("lives", "snapshot")
async def ticks_continue(notes: Notes, subject: Subject) -> None:
    """A world that lives continues from a snapshot with the same ticks."""
    world, other = await _begun(subject), await _begun(subject)
    await _advanced(notes, subject, world, 2)
    other.restore(world.snapshot())
    one, two = [await _advanced(notes, subject, each, _TICKS) for each in (world, other)]
    notes.expect(one == two, "A world restored from a snapshot continues with different ticks.")


@check("influence")
async def refused_influence(notes: Notes, subject: Subject) -> None:
    """An invalid influence is refused with a UsageError and changes nothing."""
    world = await _begun(subject)
    game = cast(Influenced, world.adapter)
    before = world.snapshot() if world.can_snapshot else b""
    for body in ({}, {"kind": "no such thing"}, {"kind": 7}, {"kind": None, "text": "\u202e"}):
        did = await refused(lambda body=body: game.influence(body))  # type: ignore[misc]
        notes.expect(not did, f"influence({body!r}) must be refused with a UsageError, but {did}.", about="influence")
    still = not world.can_snapshot or world.snapshot() == before
    notes.expect(still, "A refused influence changed the world.")
