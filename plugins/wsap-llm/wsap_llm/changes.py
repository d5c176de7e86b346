"""What is news to somebody who decided a few steps ago, told from the protocol's types alone.

There are three levels, each with all of the one before:

| level | what counts |
|---|---|
| `blocked` | the last action failed, is not possible any more, or was to move and got nowhere; the episode is over |
| `hurt` | health fell; an event of damage or death; a hostile creature came into view or much nearer |
| `change` | anything else that can make one decide differently |

At the level of `change` that is: an achievement; an event that was not told of before; a message;
what there has not been since the decision: a kind of creature, thing or ground in view, a region,
something that can be used, an action that is possible, a kind of thing in the inventory; other
effects or goals, another time of day or word of the status; and a number of the status (hunger,
mana) that fell to half of what it was at the decision, or less.

What merely goes on is no news: a number that falls by one now and then, more of what is carried
already, a creature that walks about, an event told again in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.errors import SnapshotError
from wsap_core.protocol import ActionDef, ActionResult, EmbodiedObservation, Entity, Observation
from wsap_core.untrusted import one_line
from wsap_llm.reply.steps import CONDITIONS, Condition

__all__ = ["CONDITIONS", "Change", "Condition", "Outcome", "Seen", "changes", "within"]

HEALTH = ("health", "hp", "hitpoints", "life", "lives", "shield", "armor", "armour")
"""Numbers of the status whose every fall is a hurt; any case, with or without spaces."""
HOSTILE = ("hostile", "aggressive", "attacking", "angry", "enemy")
"""Words in an entity's state that make it an enemy."""
HURTING = ("damage", "death")
"""Kinds of events that are a hurt each time."""
_NUMBER = re.compile(r"\s{0,5}(-?\d{1,15}(?:\.\d{1,15})?)\s{0,5}(?:/.{0,20}|%)?\s{0,5}")


@dataclass(frozen=True)
class Change:
    """One thing that happened."""

    level: Condition
    """The first level that it belongs to."""
    text: str
    """A few words for the model: "health fell from 9 to 7"; without anything that others wrote at length."""


def within(found: Iterable[Change], condition: Condition) -> bool:
    """Return whether any of the changes is of the condition's level or one before it."""
    most = CONDITIONS.index(condition)
    return any(CONDITIONS.index(change.level) <= most for change in found)


@dataclass(frozen=True)
class Outcome:
    """What came of one action, as far as it is news."""

    success: bool = True
    message: str = ""
    achievements: tuple[str, ...] = ()
    done: bool = False

    @classmethod
    def of(cls, result: ActionResult) -> Outcome:
        """Return the outcome of a result."""
        return cls(result.success, one_line(result.message)[:200], tuple(result.achievements), result.done)


@dataclass(frozen=True)
class Seen:
    """What was seen since a decision; JSON-ready, so that it is part of an agent's snapshot."""

    health: Mapping[str, float] = field(default_factory=dict)
    """As of the last step."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Other numbers of the status, as of the decision."""
    words: Mapping[str, str] = field(default_factory=dict)
    """The rest of the status, and the time of day, as of the last step."""
    place: str | None = None
    """Where the agent stood and what it faced at the last step; None where the game has no coordinates."""
    hostile: int = 0
    """Hostile creatures in view at the last step."""
    nearest: float | None = None
    """How near the nearest hostile creature was at the decision, or has come since without being news."""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What has been seen since the decision, by sort: "entity", "terrain", "region", "item", "usable", "legal",
    "event"."""
    standing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Effects and goals as of the last step."""

    @classmethod
    def at(cls, observation: Observation, legal: Sequence[ActionDef]) -> Seen:
        """Return what is seen at the moment of a decision."""
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

    def after(self, observation: Observation, legal: Sequence[ActionDef]) -> Seen:
        """Return what is seen once a further step was taken without a new decision."""
        now = Seen.at(observation, legal)
        near = [distance for distance in (self.nearest, now.nearest) if distance is not None]
        return replace(
            now,
            numbers={**now.numbers, **self.numbers},
            nearest=min(near, default=None),
            kinds={
                sort: tuple(dict.fromkeys((*self.kinds.get(sort, ()), *found))) for sort, found in now.kinds.items()
            },
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "health": dict(self.health),
            "numbers": dict(self.numbers),
            "words": dict(self.words),
            "place": self.place,
            "hostile": self.hostile,
            "nearest": self.nearest,
            "kinds": {sort: list(found) for sort, found in self.kinds.items()},
            "standing": {sort: list(found) for sort, found in self.standing.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Seen:
        """Return what `to_json` gave.

        Raises:
            SnapshotError: it is something else.
        """
        try:
            return cls(
                {str(k): float(v) for k, v in data["health"].items()},
                {str(k): float(v) for k, v in data["numbers"].items()},
                {str(k): str(v) for k, v in data["words"].items()},
                None if data["place"] is None else str(data["place"]),
                int(data["hostile"]),
                None if data["nearest"] is None else float(data["nearest"]),
                {str(k): tuple(map(str, v)) for k, v in data["kinds"].items()},
                {str(k): tuple(map(str, v)) for k, v in data["standing"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SnapshotError(f"What was seen since the last decision is damaged: {error}.") from error


def changes(
    seen: Seen,
    observation: Observation,
    legal: Sequence[ActionDef],
    *,
    outcome: Outcome | None = None,
    action: ActionDef | None = None,
) -> list[Change]:
    """Return what is news in an observation, gravest first.

    Args:
        seen: since the decision, this observation not included.
        observation: the present one.
        legal: the actions that are possible now.
        outcome: of the last action; None if it is not known.
        action: the action that is being repeated; None if none is.
    """
    now = Seen.at(observation, legal)
    return [
        *_blocked(seen, now, legal, outcome, action),
        *_hurts(seen, now, observation),
        *_others(seen, now, observation, outcome),
    ]


def _blocked(
    seen: Seen, now: Seen, legal: Sequence[ActionDef], outcome: Outcome | None, action: ActionDef | None
) -> list[Change]:
    found: list[Change] = []
    if outcome is not None and outcome.done:
        found.append(Change("blocked", "the episode ended"))
    if outcome is not None and not outcome.success:
        found.append(Change("blocked", f"it failed: {outcome.message}" if outcome.message else "it failed"))
    if action is not None and action.name not in {a.name for a in legal}:
        found.append(Change("blocked", f"{action.name} is not possible any more"))
    elif not found and action is not None and action.category == "movement" and _is_stuck(seen, now):
        found.append(Change("blocked", "you got no further"))
    return found


def _is_stuck(seen: Seen, now: Seen) -> bool:
    return now.place is not None and now.place == seen.place


def _hurts(seen: Seen, now: Seen, observation: Observation) -> list[Change]:
    found = [
        Change("hurt", f"{name} fell from {_plain(before)} to {_plain(now.health[name])}")
        for name, before in seen.health.items()
        if name in now.health and now.health[name] < before
    ]
    kinds = sorted({e.type for e in observation.recent_events if e.type in HURTING})
    found += [Change("hurt", f"an event of {kind}") for kind in kinds]
    names = ", ".join(sorted({one_line(e.type)[:40] for e in _hostile(observation)}))
    if now.hostile > seen.hostile:
        found.append(Change("hurt", f"a hostile creature came into view ({names})"))
    elif now.nearest is not None and seen.nearest and now.nearest <= seen.nearest / 2:
        found.append(Change("hurt", f"a hostile creature came near ({names})"))
    return found


_SORTS: Mapping[str, str] = {
    "entity": "{} came into view",
    "terrain": "{} came into view",
    "region": "you are in the region {} now",
    "item": "you have {} now",
    "usable": "{} can be used now",
    "legal": "{} is possible now",
}


def _others(seen: Seen, now: Seen, observation: Observation, outcome: Outcome | None) -> list[Change]:
    found = [Change("change", f"achieved {one_line(name)[:60]}") for name in (outcome.achievements if outcome else ())]
    if observation.messages:
        found.append(Change("change", "somebody spoke"))
    told = seen.kinds.get("event", ())
    if any(event not in told for event in now.kinds["event"]):
        found.append(Change("change", "something happened (see the recent events)"))
    for sort, wording in _SORTS.items():
        news = [name for name in now.kinds[sort] if name not in seen.kinds.get(sort, ())]
        if news:
            found.append(Change("change", wording.format(_few(news))))
    for sort, what in (("effect", "the effects on you"), ("goal", "your goals")):
        if seen.standing.get(sort, ()) != now.standing[sort]:
            found.append(Change("change", f"{what} changed"))
    found += [
        Change("change", f"{one_line(name)[:40]} is {one_line(now.words[name])[:60]} now")
        for name, before in seen.words.items()
        if name in now.words and now.words[name] != before
    ]
    found += [
        Change("change", f"{one_line(name)[:40]} fell from {_plain(before)} to {_plain(now.numbers[name])}")
        for name, before in seen.numbers.items()
        if name in now.numbers and now.numbers[name] < before and now.numbers[name] <= before / 2
    ]
    return found


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name)[:40] for name in names[:3])
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


def _number(value: Any) -> float | None:
    """Return a number of the status, also where it is written as "7/9" or "80 %". Any: whatever a game puts there."""
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
