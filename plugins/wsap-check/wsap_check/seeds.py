"""Checks of determinism: the same seed gives the same trajectory, here and elsewhere."""

from __future__ import annotations

import random
import sys

from wsap_check.play import RandomPlayer, Table, baseline, walk
from wsap_check.steps import Step, difference_by_seat, first_difference, place
from wsap_check.subject import Fault, Notes, NothingToCheck, Subject, at_once, check, other_processes
from wsap_check.trajectory import Request, digests, first_different, trajectories_elsewhere

_SEEDS = 4


@check("seed")
async def same_seed(notes: Notes, subject: Subject) -> None:
    """The same seed and actions give the same trajectory."""
    if found := first_difference(await _trace(subject), await _trace(subject)):
        notes.error(f"The same seed and actions gave two trajectories, which differ in {found[0]}. {_WHY}", found[1])


_WHY = "All chance comes from the seed, and time is counted by the world."


@check("seed")
async def independent(notes: Notes, subject: Subject) -> None:
    """A world is not affected by anything that runs beside it."""
    if subject.can("multi-seat") and subject.spec.timing == "free":
        raise NothingToCheck("seats act whenever they like, so that no two plays are alike")
    alone = await _step_by_step(subject, disturbed=False)
    if difference_by_seat(alone, await _step_by_step(subject, disturbed=False)):
        raise NothingToCheck("the same seed gives different trajectories, see `same-seed`")
    trace = await _step_by_step(subject, disturbed=True)
    if found := difference_by_seat(alone, trace):
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


def _draw_chance() -> None:
    """Use the process's global generators, as any other code may do."""
    random.random()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.random()


@check("seed", other_processes)
async def other_process(notes: Notes, subject: Subject) -> None:
    """The same seed gives the same trajectory in another process, whatever its PYTHONHASHSEED."""
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
            f"With PYTHONHASHSEED={hash_seed} another process plays differently from this step on. Never iterate over "
            "a set of texts, use hash() or id(), or look at the clock.",
            where,
        )
        return


@check("seed")
async def seeds_matter(notes: Notes, subject: Subject) -> None:
    """Different seeds give different trajectories."""
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


@check("seed", "multi-seat", at_once)
async def arrival_order(notes: Notes, subject: Subject) -> None:
    """The order in which seats act within a round does not matter."""
    forwards = await baseline(subject, 34, subject.steps)
    backwards = await (await Table(subject, backwards=True).begin()).play(RandomPlayer(34), subject.steps)
    if found := difference_by_seat(forwards, backwards):
        notes.error(f"Who acts first within a round changes {found[0]}. Resolve in a fixed order.", found[1])


async def _trace(subject: Subject) -> list[Step]:
    trace = await walk(subject, 31)
    if not trace:
        raise Fault("No seat could take a single step.", place(subject.seed, 0, 0))
    return trace
