"""What is worth telling of a step: moments, which are written with it and are the same whenever it is played again."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.protocol import ActionResult, DeathEvent
from wsap_core.untrusted import single_line
from wsap_nexus.store.records import SEAT, NewMoment

WEIGHTS: Mapping[str, float] = {
    "died": 100.0,
    "meta_goal_reached": 70.0,
    "achievement": 50.0,
    "brought_home": 50.0,
    "talked": 30.0,
    "hit": 25.0,
    "entered": 15.0,
    "again": 10.0,
    "left": 10.0,
}
"""Kind of moment -> how much it draws the eye, from 0 to 100."""

MOST = 12
"""Maximum number of moments of one step."""
LONGEST = 200
"""Maximum characters of what a moment quotes."""


def moments_of_step(result: ActionResult, worked: Mapping[str, int]) -> tuple[NewMoment, ...]:
    """Return the moments of a step: what the player achieved, its death, or that it was hurt.

    `worked` is how often it has achieved what, with this step: `achievement:NAME` -> number.
    """
    told = []
    for name in list(result.achievements)[: MOST - 1]:
        what = _quoted(str(name).replace("_", " "))
        if worked.get(f"achievement:{name}", 0) > 1:
            told.append(_moment("again", f", again: {what}", f", снова: {what}"))
        else:
            told.append(_moment("achievement", f", for the first time: {what}", f", впервые: {what}"))
    for kind, event, fallback in (("died", "death", ("it died", "смерть")), ("hit", "damage", ("hurt", "ранение"))):
        if (text := _told_of(result, event)) is not None:
            told.append(_moment(kind, *(f": {_quoted(text) or word}" for word in fallback)))
            break
    return tuple(told)


def moment_of_death(death: DeathEvent) -> NewMoment:
    """Return the moment of a death that a world reports."""
    cause, killer = _quoted(death.cause or ""), _quoted(death.killer or "")
    english = f" died{f' of {cause}' if cause else ''}{f', killed by {killer}' if killer else ''}"
    return _moment("died", english, ": смерть" + "".join(f", {part}" for part in (cause, killer) if part))


def _moment(kind: str, english: str, russian: str) -> NewMoment:
    return NewMoment(kind, WEIGHTS[kind], SEAT, {"en": english, "ru": russian})


def _told_of(result: ActionResult, kind: str) -> str | None:
    """Return what the step's observation tells of a new event of a kind; None if it tells of none."""
    seen = result.observation
    return next(
        (e.description for e in seen.recent_events if e.type == kind and (e.step is None or e.step >= seen.step - 1)),
        None,
    )


def _quoted(text: str) -> str:
    line = single_line(text)
    return (line if len(line) <= LONGEST else line[: LONGEST - 3] + "...").rstrip(".")
