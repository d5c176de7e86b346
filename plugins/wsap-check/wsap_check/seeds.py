"""Does the same seed give the same trajectory: again, next to another world, and in another process?"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from wsap_check.play import RandomPlayer, Step, Table, baseline, first_difference
from wsap_check.subject import Fault, Notes, NothingToCheck, Subject, check
from wsap_check.trajectory import Request, digests, trajectories_elsewhere

_SEEDS = 4


@check("same-seed", "The same seed and actions give the same trajectory.", needs=("seed",))
async def same_seed(notes: Notes, subject: Subject) -> None:
    """Play twice."""
    one = await _trace(subject)
    other = await _trace(subject)
    if found := first_difference(one, other):
        notes.error(f"The same seed and actions gave two trajectories, which differ in {found[0]}. {_WHY}", found[1])


_WHY = "All chance comes from the seed, and time is counted by the world."


@check("independent", "A world does not notice what goes on beside it.", needs=("seed",))
async def independent(notes: Notes, subject: Subject) -> None:
    """Play once alone, and once with another world and other users of chance in between."""
    if subject.can("multi-seat") and subject.spec.timing == "free":
        raise NothingToCheck("seats act whenever they like, so that no two plays are alike")
    alone = await _step_by_step(subject, disturbed=False)
    if _difference_by_seat(alone, await _step_by_step(subject, disturbed=False)):
        raise NothingToCheck("the same seed gives different trajectories, as `same-seed` says")
    trace = await _step_by_step(subject, disturbed=True)
    if found := _difference_by_seat(alone, trace):
        notes.error(
            "Another world beside it, or other draws from the global random generator, changed the trajectory "
            f"in {found[0]}. Use context.random, and keep nothing in modules or classes.",
            found[1],
        )


async def _step_by_step(subject: Subject, *, disturbed: bool) -> list[Step]:
    """Return a trace that is played step by step, with or without something going on in between."""
    beside = await Table(subject, subject.seed + 1).begin() if disturbed else None
    table = await Table(subject).begin()
    player, noise, trace = RandomPlayer(31), RandomPlayer(32), list[Step]()
    state = random.getstate()
    try:
        while len(trace) < subject.steps:
            more = await table.play(player, 1)
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
            await beside.play(noise, 1)
    finally:
        random.setstate(state)
    return trace


def _difference_by_seat(one: Sequence[Step], other: Sequence[Step]) -> tuple[str, str] | None:
    """Return what differs first between what each seat lived through, as far as both traces go."""
    for name in sorted({step.seat for step in one}):
        mine = [s for s in one if s.seat == name]
        theirs = [s for s in other if s.seat == name]
        length = min(len(mine), len(theirs))
        if found := first_difference(mine[:length], theirs[:length]):
            return found
    return None


def _draw_chance() -> None:
    """Use the process's global generators, as any other code may do."""
    random.random()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.random()


def other_processes(subject: Subject) -> str:
    """Say why nothing is compared with other processes."""
    return "" if subject.subprocesses else "other processes were not asked for"


@check(
    "other-process",
    "The same seed gives the same trajectory in another process, whatever PYTHONHASHSEED.",
    needs=("seed",),
    applies=other_processes,
)
async def other_process(notes: Notes, subject: Subject) -> None:
    """Play here, and in processes with another hash seed, time zone and folder."""
    request = Request.of(subject)
    await baseline(subject, 31, subject.steps)
    here = await _trace(subject)
    expected = digests(here)
    for hash_seed, elsewhere in trajectories_elsewhere(request):
        position = first_different(expected, elsewhere)
        if position is None:
            continue
        where = here[min(position, len(here) - 1)].where if here else ""
        notes.error(
            f"With PYTHONHASHSEED={hash_seed} another process plays otherwise from this step on. Never iterate over "
            "a set of texts, use hash() or id(), or look at the clock.",
            where,
        )
        return


def first_different(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Return the position of the first difference between two sequences, None if they are equal."""
    for position, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return position
    return None if len(one) == len(other) else min(len(one), len(other))


@check("seeds-matter", "Different seeds give different trajectories.", needs=("seed",))
async def seeds_matter(notes: Notes, subject: Subject) -> None:
    """Play several seeds with the same choices."""
    texts = set()
    for offset in range(_SEEDS):
        table = await Table(subject, subject.seed + offset).begin()
        trace = await table.play(RandomPlayer(33), min(subject.steps, 100))
        texts.add("\n".join(step.text() for step in trace))
    if len(texts) == 1:
        notes.warn(
            f"Seeds {subject.seed} to {subject.seed + _SEEDS - 1} all give the same trajectory; "
            "that is right only if there is no chance in the game."
        )


@check("arrival-order", "The order in which seats act within a round does not matter.", needs=("seed", "multi-seat"))
async def arrival_order(notes: Notes, subject: Subject) -> None:
    """Let the first seat act first, and then the last."""
    if subject.spec.timing not in ("simultaneous", "phased"):
        raise NothingToCheck("seats do not act at the same time")
    forwards = await baseline(subject, 34, subject.steps)
    backwards = await (await Table(subject, backwards=True).begin()).play(RandomPlayer(34), subject.steps)
    if found := _difference_by_seat(forwards, backwards):
        notes.error(f"Who acts first within a round changes {found[0]}. Resolve in a fixed order.", found[1])


async def _trace(subject: Subject) -> list[Step]:
    table = await Table(subject).begin()
    trace = await table.play(RandomPlayer(31), subject.steps, episodes=True)
    if not trace:
        raise Fault("No seat could take a single step.", table.where())
    return trace
