"""Which world of a nexus a spectator is shown, and why.

It depends only on what happened and on the time: every page shows the same. What an audience may not read is not
among its moments: otherwise a cut would betray it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

HALF_LIFE = 15.0
"""Seconds after which a moment counts half."""
SHORTEST = 12.0
"""Seconds for which a world stays on stage at least."""
SHORTEST_FOR_DEATH = 4.0
"""The same if somebody dies elsewhere."""
LONG = 90.0
"""Seconds after which the world on stage counts half, if another is worth it."""
WORTH_IT = 20.0
"""The heat from which another world is."""
CALM = 10.0
"""The heat below which nothing happens in a world."""

FORGOTTEN = 180.0
"""Seconds after which a moment counts nothing: even a death is below 0.1 then."""
PERIOD = 300
"""Seconds between two beginnings of the director's watch; see `watched`."""


@dataclass(frozen=True)
class Moment:
    """Something that happened to an agent in a world."""

    time: float
    """Seconds since 1970."""
    world: str
    agent: str
    kind: str
    weight: float
    """How much it draws the eye, from 0 to 100."""
    words: str
    """A sentence without a full stop."""
    public: bool
    """Whether everybody may read it; otherwise only the owner."""
    run: str = ""
    """The run in which it happened."""
    step: int | None = None
    """The number of the decision in the run, from 1; None if it is unknown."""

    def heat(self, now: float) -> float:
        """Return how much it counts at a time: its weight, halved each `HALF_LIFE`; 0 before it, and once forgotten."""
        if not self.time <= now < self.time + FORGOTTEN:
            return 0.0
        return float(self.weight * 2 ** ((self.time - now) / HALF_LIFE))


@dataclass(frozen=True)
class Standing:
    """A world that can be on stage."""

    lives: bool
    """Whether it goes on by itself."""
    playing: int
    """The number of agents in it that are not paused."""


@dataclass(frozen=True)
class Shot:
    """What is on stage."""

    world: str
    since: float
    """Seconds since 1970."""


def heats(worlds: Iterable[str], moments: Iterable[Moment], now: float) -> dict[str, float]:
    """Return how much happens in each world: the sum over its moments."""
    found = dict.fromkeys(worlds, 0.0)
    for moment in moments:
        if moment.world in found:
            found[moment.world] += moment.heat(now)
    return found


def next_shot(on: Shot | None, worlds: Mapping[str, Standing], moments: Sequence[Moment], now: float) -> Shot | None:
    """Return what is on stage at a time, given what was; None if there is no world to show.

    Another world comes on if it is hotter by half and 10, once a shot has lasted 12 s, or 4 s if somebody has just died
    there. A world that lasts for 90 s counts half beside one that is worth it. Of equals it is the smaller id.
    """
    shown = {world: standing for world, standing in worlds.items() if standing.playing or standing.lives}
    if not shown:
        return None
    hot = heats(shown, moments, now)
    if on is None or on.world not in shown:
        return Shot(_first(shown, hot), now)
    lasted, others = now - on.since, {world: heat for world, heat in hot.items() if world != on.world}
    best = min(others, key=lambda world: (-others[world], world), default=None)
    if best is None:
        return on
    counts = hot[on.world] / (2 if lasted >= LONG and others[best] >= WORTH_IT else 1)
    died = any(m.kind == "died" and m.world == best and 0 <= now - m.time < HALF_LIFE for m in moments)
    if others[best] >= 1.5 * counts + CALM and lasted >= (SHORTEST_FOR_DEATH if died else SHORTEST):
        return Shot(best, now)
    return on


@dataclass(frozen=True)
class Watch:
    """What the director has shown since a time."""

    since: int
    """The second with which it began, since 1970."""
    until: int
    """The last second that it has watched."""
    shot: Shot | None


def watched(before: Watch | None, worlds: Mapping[str, Standing], moments: Sequence[Moment], second: int) -> Watch:
    """Return what is on stage in a second, chosen anew in each second since the watch began.

    A watch begins with nothing on stage, between one and two `PERIOD`s ago, at a time that depends on the clock alone.
    So whoever knows the moments and the worlds comes to the same shot, whether it looked all the time or never before.

    Args:
        before: an earlier watch, to go on from if it began at the same time; the result is the same without.
        moments: those of the time of the watch and `FORGOTTEN` before it, oldest first.
    """
    since = (second // PERIOD - 1) * PERIOD
    if before is None or before.since != since or before.until > second:
        before = Watch(since, since - 1, None)
    times, shot = [moment.time for moment in moments], before.shot
    for now in range(before.until + 1, second + 1):
        recent = moments[bisect_left(times, now - FORGOTTEN) : bisect_right(times, now)]
        shot = next_shot(shot, worlds, recent, float(now))
    return Watch(since, second, shot)


def _first(shown: Mapping[str, Standing], hot: Mapping[str, float]) -> str:
    """Return the hottest world; if all are calm, one with agents in it, then one that lives, then the smallest id."""
    if max(hot.values()) >= CALM:
        return min(shown, key=lambda world: (-hot[world], world))
    return min(shown, key=lambda world: (not shown[world].playing, not shown[world].lives, world))


def reason(world: str, standing: Standing, moments: Iterable[Moment], now: float) -> str:
    """Return in words why a world is on stage: what counts most there, or that it goes on calmly."""
    here = [moment for moment in moments if moment.world == world and moment.heat(now) >= 1.0]
    if here:
        return max(here, key=lambda moment: (moment.heat(now), moment.time)).words
    return "it goes on by itself" if standing.lives and not standing.playing else "nothing else happens elsewhere"
