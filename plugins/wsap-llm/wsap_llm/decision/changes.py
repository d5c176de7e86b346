"""Detects changes since a decision that was made a few steps ago, by the protocol's types alone.

There are three conditions, each of which includes the one before:

| condition | what counts |
|---|---|
| `blocked` | the last action failed, is no longer possible or was a movement without effect; the episode is over |
| `hurt` | health fell; an event of damage or death; a hostile creature came into view or much nearer |
| `change` | anything else that can affect the decision |

`change` adds: an achievement; a new event; a message; a kind of creature, object, terrain, region, usable object,
possible action or item not seen since the decision; other effects, goals, time of day or textual status; and a numeric
status (hunger, mana) that fell to half of its value at the decision, or less.

These are not changes: a number that falls by one now and then, more of an item, a moving creature, and an event
repeated with the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wsap_core.protocol import ActionDef, ActionResult, EmbodiedObservation, Entity, Observation
from wsap_core.untrusted import single_line
from wsap_llm.reply.steps import CONDITIONS, Condition

HEALTH = ("health", "hp", "hitpoints", "life", "lives", "shield", "armor", "armour")
"""Status names that count as health; any case, with or without spaces."""
HOSTILE = ("hostile", "aggressive", "attacking", "angry", "enemy")
"""Words in an entity's state that mark it as hostile."""
HURTING = ("damage", "death")
"""Event types of the condition `hurt`."""
_NUMBER = re.compile(r"\s{0,5}(-?\d{1,15}(?:\.\d{1,15})?)\s{0,5}(?:/.{0,20}|%)?\s{0,5}")


@dataclass(frozen=True)
class Difference:
    """One thing that changed."""

    level: Condition
    """The first condition that includes it."""
    text: str
    """A few words for the model, such as "health fell from 9 to 7", without long texts by others."""


def within(found: Iterable[Difference], condition: Condition) -> bool:
    """Return whether a condition includes any of the differences."""
    most = CONDITIONS.index(condition)
    return any(CONDITIONS.index(change.level) <= most for change in found)


@dataclass(frozen=True)
class Outcome:
    """The relevant parts of an action's result."""

    success: bool = True
    message: str = ""
    achievements: tuple[str, ...] = ()
    done: bool = False
    known: bool = True
    """Whether the outcome is known."""

    @classmethod
    def of(cls, result: ActionResult) -> Outcome:
        """Return the outcome of a result."""
        return cls(
            result.success,
            single_line(result.message)[:200],
            tuple(result.achievements),
            result.done,
            result.outcome != "unknown",
        )


@dataclass(frozen=True)
class ObservationDigest:
    """A summary of the observations since a decision; part of the agent's snapshot."""

    health: Mapping[str, float]
    """At the last step."""
    numbers: Mapping[str, float]
    """Other numeric status, at the decision."""
    words: Mapping[str, str]
    """Textual status and time of day, at the last step."""
    place: str | None
    """Position and facing at the last step; None if the game has no coordinates."""
    hostile: int
    """Number of hostile creatures in view at the last step."""
    nearest: float | None
    """Smallest distance of a hostile creature since the decision."""
    kinds: Mapping[str, tuple[str, ...]]
    """What was seen since the decision: "entity", "terrain", "region", "item", "usable", "legal", "event"."""
    standing: Mapping[str, tuple[str, ...]]
    """Effects and goals at the last step."""

    @classmethod
    def at(cls, observation: Observation, legal: Sequence[ActionDef]) -> ObservationDigest:
        """Return the digest of the observation at a decision."""
        numbers, words = _status(observation)
        hostile = _hostile(observation)
        return cls(
            health=_health(observation, numbers),
            numbers={name: value for name, value in numbers.items() if not _is_health(name)},
            words=words,
            place=_place(observation),
            hostile=len(hostile),
            nearest=min((e.distance for e in hostile), default=None),
            kinds=_kinds(observation, legal),
            standing=_standing(observation),
        )

    def after(self, observation: Observation, legal: Sequence[ActionDef]) -> ObservationDigest:
        """Return the digest after another step without a new decision."""
        now = ObservationDigest.at(observation, legal)
        near = [distance for distance in (self.nearest, now.nearest) if distance is not None]
        return replace(
            now,
            numbers={**now.numbers, **self.numbers},
            nearest=min(near, default=None),
            kinds={
                sort: tuple(dict.fromkeys((*self.kinds.get(sort, ()), *found))) for sort, found in now.kinds.items()
            },
        )


def changed(
    seen: ObservationDigest,
    observation: Observation,
    legal: Sequence[ActionDef],
    *,
    outcome: Outcome | None = None,
    action: ActionDef | None = None,
) -> list[Difference]:
    """Return the changes since the last decision, the most serious first.

    `seen` is the digest without this observation, `outcome` that of the last action if known, and `action` the action
    that is being repeated, if any.
    """
    now = ObservationDigest.at(observation, legal)
    return [
        *_blocked(seen, now, legal, outcome, action),
        *_hurts(seen, now, observation),
        *_others(seen, now, observation, outcome),
    ]


def _blocked(
    seen: ObservationDigest,
    now: ObservationDigest,
    legal: Sequence[ActionDef],
    outcome: Outcome | None,
    action: ActionDef | None,
) -> list[Difference]:
    found: list[Difference] = []
    if outcome is not None and outcome.done:
        found.append(Difference("blocked", "the episode ended"))
    if outcome is not None and not outcome.success:
        said = "it failed" if outcome.known else "nobody knows whether it was done"
        found.append(Difference("blocked", f"{said}: {outcome.message}" if outcome.message else said))
    if action is not None and action.name not in {a.name for a in legal}:
        found.append(Difference("blocked", f"{action.name} is not possible any more"))
    elif not found and action is not None and action.category == "movement" and now.place == seen.place is not None:
        found.append(Difference("blocked", "you got no further"))
    return found


def _hurts(seen: ObservationDigest, now: ObservationDigest, observation: Observation) -> list[Difference]:
    found = [
        Difference("hurt", f"{name} fell from {_plain(before)} to {_plain(now.health[name])}")
        for name, before in seen.health.items()
        if name in now.health and now.health[name] < before
    ]
    kinds = sorted({e.type for e in observation.recent_events if e.type in HURTING})
    found += [Difference("hurt", f"an event of {kind}") for kind in kinds]
    names = ", ".join(sorted({single_line(e.type)[:40] for e in _hostile(observation)}))
    if now.hostile > seen.hostile:
        found.append(Difference("hurt", f"a hostile creature came into view ({names})"))
    elif now.nearest is not None and seen.nearest and now.nearest <= seen.nearest / 2:
        found.append(Difference("hurt", f"a hostile creature came near ({names})"))
    return found


_SORTS: Mapping[str, str] = {
    "entity": "{} came into view",
    "terrain": "{} came into view",
    "region": "you are in the region {} now",
    "item": "you have {} now",
    "usable": "{} can be used now",
    "legal": "{} is possible now",
}


def _others(
    seen: ObservationDigest, now: ObservationDigest, observation: Observation, outcome: Outcome | None
) -> list[Difference]:
    found = [
        Difference("change", f"achieved {single_line(name)[:60]}") for name in (outcome.achievements if outcome else ())
    ]
    if observation.messages:
        found.append(Difference("change", "somebody spoke"))
    told = seen.kinds.get("event", ())
    if any(event not in told for event in now.kinds["event"]):
        found.append(Difference("change", "something happened (see the recent events)"))
    for sort, wording in _SORTS.items():
        fresh = [name for name in now.kinds[sort] if name not in seen.kinds.get(sort, ())]
        if fresh:
            found.append(Difference("change", wording.format(_few(fresh))))
    for sort, what in (("effect", "the effects on you changed"), ("goal", "your goals changed")):
        if seen.standing.get(sort, ()) != now.standing[sort]:
            found.append(Difference("change", what))
    found += [
        Difference("change", f"{single_line(name)[:40]} is {single_line(now.words[name])[:60]} now")
        for name, before in seen.words.items()
        if name in now.words and now.words[name] != before
    ]
    found += [
        Difference("change", f"{single_line(name)[:40]} fell from {_plain(before)} to {_plain(now.numbers[name])}")
        for name, before in seen.numbers.items()
        if name in now.numbers and now.numbers[name] < before and now.numbers[name] <= before / 2
    ]
    return found


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(single_line(name)[:40] for name in names[:3])
    return f"{shown} and more" if len(names) > 3 else shown


def _status(observation: Observation) -> tuple[dict[str, float], dict[str, str]]:
    numbers: dict[str, float] = {}
    words = {"time of day": observation.time_of_day} if observation.time_of_day else {}
    for name, value in observation.status.items():
        number = _number(value)
        if number is not None:
            numbers[name] = number
        elif isinstance(value, str | bool):
            words[name] = str(value)
    return numbers, words


def _number(value: object) -> float | None:
    """Parse a number of the status, also from "7/9" or "80 %"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    match = _NUMBER.fullmatch(value) if isinstance(value, str) and len(value) < 60 else None
    return float(match[1]) if match else None


def _health(observation: Observation, numbers: Mapping[str, float]) -> dict[str, float]:
    found = {name: value for name, value in numbers.items() if _is_health(name)}
    if isinstance(observation, EmbodiedObservation) and not found:
        found["health"] = float(observation.avatar.health)
    return found


def _is_health(name: str) -> bool:
    return re.sub(r"[\s_\-]+", "", name.lower()) in HEALTH


def _place(observation: Observation) -> str | None:
    where: Sequence[float] = observation.location.coordinates
    facing = ""
    if isinstance(observation, EmbodiedObservation):
        where, facing = where or observation.avatar.position, observation.facing
    return f"{[float(c) for c in where]} {facing} {observation.location.description}" if where else None


def _hostile(observation: Observation) -> list[Entity]:
    return [
        entity
        for entity in observation.nearby_entities
        if entity.state and any(word in HOSTILE for word in re.split(r"\W+", entity.state.lower()))
    ]


def _kinds(observation: Observation, legal: Sequence[ActionDef]) -> dict[str, tuple[str, ...]]:
    entities = observation.nearby_entities
    found: dict[str, Iterable[str]] = {
        "entity": (f"{e.type} {e.name}" if e.name else e.type for e in entities),
        "terrain": (t.type for t in observation.nearby_terrain),
        "region": (observation.location.region,) if observation.location.region else (),
        "item": (name for name, count in observation.inventory.items() if count),
        "usable": (e.type for e in entities if e.interactable),
        "legal": (a.name for a in legal),
        "event": (f"{e.type}|{e.source or ''}|{e.description}" for e in observation.recent_events),
    }
    return {sort: tuple(dict.fromkeys(names)) for sort, names in found.items()}


def _standing(observation: Observation) -> dict[str, tuple[str, ...]]:
    return {
        "effect": tuple(sorted({e.name for e in observation.active_effects})),
        "goal": tuple(sorted({g.id for g in observation.current_goals})),
    }


def _plain(value: float) -> str:
    return str(int(value)) if value.is_integer() else f"{value:g}"
