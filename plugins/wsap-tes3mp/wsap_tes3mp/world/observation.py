"""Perceptions as observations: as data, as text, and as a drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from typing_extensions import override

from wsap_core.protocol import Avatar, EmbodiedObservation, Entity, Event, Goal, Location
from wsap_core.protocol.lines import number
from wsap_core.protocol.observation import render_brief, render_observation
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.views import Block, PlaceGraphBlock, TableBlock, TextBlock, View
from wsap_core.untrusted import sanitize
from wsap_tes3mp.protocol.perception import OPAQUE, NearbyEntity, PerceptionOutput
from wsap_tes3mp.world.actions import availability

_NAME, _SPEECH = 60, 600
"""Maximum characters of a name and of speech in a text for models."""
_MOST = 30
"""Maximum entities in an observation."""


@dataclass(frozen=True)
class MorrowindObservation(EmbodiedObservation):
    """A perception as an observation."""

    perception: Mapping[str, JsonValue] = field(default_factory=dict, kw_only=True)
    """The `PerceptionOutput` as JSON, without `raw_engine_data` and `boot_id`."""
    stale_seconds: float = field(default=0.0, kw_only=True)
    """Seconds since the bridge last showed a new moment, if that is too long; else 0."""

    @property
    def seen(self) -> PerceptionOutput:
        """The perception.

        Raises:
            pydantic.ValidationError: the observation was made from something else.
        """
        return PerceptionOutput.model_validate(self.perception)

    @override
    def to_text(self) -> str:
        sections = [("STALE", self._age()), ("EQUIPPED", ", ".join(self.avatar.equipment.values())), _speech(self.seen)]
        # The ids in the choices are those of nearby and carried things: only those shown, if there are many.
        return render_observation(self, extra_sections=sections)

    @override
    def to_brief(self) -> str:
        title, said = _speech(self.seen)
        return render_brief(self, extra_lines=[self._age(), f"{title}:\n{said}" if said else ""])

    def _age(self) -> str:
        old = number(round(self.stale_seconds))
        return f"This is {old} seconds old; the bridge shows nothing newer." if self.stale_seconds else ""

    @override
    def typed_names(self) -> Mapping[str, str]:
        seen = self.seen
        listed = [(one.entity_id, one.name) for one in seen.nearby_entities]
        listed += [(one.item_id, one.name) for one in seen.inventory or ()]
        times = Counter(_plain(name).casefold() for _, name in listed)
        named = {_plain(name): word for word, name in listed if times[_plain(name).casefold()] == 1}
        return named | {str(place): word for place, (word, _) in enumerate(listed, 1)}

    @override
    def to_view(self) -> View:
        return picture(self.seen)


def observation_of(
    seen: PerceptionOutput,
    avatar: Avatar,
    *,
    step: int,
    events: Sequence[Event] = (),
    stale_seconds: float = 0.0,
    over: str = "",
) -> MorrowindObservation:
    """Return a perception as an observation.

    Args:
        seen: the perception.
        avatar: the body.
        step: commands so far.
        events: what happened since the last observation.
        stale_seconds: for how long this same moment has been shown, where that is too long.
        over: why nothing is possible any more; empty while something is.
    """
    place, carried, told = seen.location, seen.inventory_summary, availability(seen)
    if over:
        told = [replace(one, available=False, reason=over) for one in told]
    overloaded = " (overloaded)" if carried.encumbrance_pct > 1 else ""
    status: dict[str, JsonValue] = {
        "health": f"{seen.health.current}/{seen.health.max}",
        "gold": carried.gold,
        "load": f"{100 * carried.encumbrance_pct:.0f}%{overloaded}",
    }
    if seen.inventory is None:
        status["items"] = carried.item_count
    if seen.environment.is_combat:
        status["combat"] = True
    where = "inside" if place.interior else "outside"
    at = f"{_plain(place.cell)}, {where}, at x {number(round(place.x, 1))}, y {number(round(place.y, 1))}"
    return MorrowindObservation(
        status=status,
        inventory=avatar.inventory,
        location=Location((place.x, place.y, place.z), place.cell, at),
        nearby_entities=[_entity(one) for one in seen.nearby_entities[:_MOST]],
        current_goals=[Goal(q.quest_id, sanitize(q.name, 200), "main", f"stage {q.stage}") for q in seen.active_quests],
        recent_events=events,
        step=step,
        time_of_day=f"{_plain(seen.environment.time_of_day)}, {_plain(seen.environment.weather)}",
        available_actions=told,
        avatar=avatar,
        perception=seen.model_dump(mode="json", exclude=OPAQUE, exclude_none=True),
        stale_seconds=stale_seconds,
    )


def _entity(one: NearbyEntity) -> Entity:
    feeling = "" if one.disposition is None else f", likes you {one.disposition} of 100"
    name, away = _plain(one.name), number(round(one.distance, 1))
    line = f'{one.entity_id}: "{name}" ({one.entity_type}), {away} away{feeling}'
    return Entity(one.entity_type, name, one.distance, "around", None, True, line)


def _speech(seen: PerceptionOutput) -> tuple[str, str]:
    talk = seen.dialogue
    if talk is None:
        return "DIALOGUE", ""
    lines = [sanitize(talk.text, _SPEECH, lines=True)] if talk.text.strip() else []
    lines += [f"topics: {', '.join(_plain(topic) for topic in talk.topics)}"] if talk.topics else []
    lines += [f"answer {index}: {sanitize(text, 200)}" for index, text in enumerate(talk.choices)]
    return f"DIALOGUE WITH {_plain(talk.entity_id)}", "\n".join(lines) or "Nothing was said yet."


def picture(seen: PerceptionOutput, known: Sequence[tuple[str, str]] = ()) -> View:
    """Return a drawing of a perception, with the already `known` ways from place to place."""
    here = _plain(seen.location.cell)
    doors = [_plain(e.name).removeprefix("Door to ").removeprefix("Path to ") for e in seen.nearby_entities
             if e.entity_type == "door"]  # fmt: skip
    present = [_plain(e.name) for e in seen.nearby_entities if e.entity_type in ("npc", "creature", "player")]
    ways = dict.fromkeys([*((here, door) for door in sorted(doors)), *((_plain(a), _plain(b)) for a, b in known)])
    places = dict.fromkeys([here, *(place for way in ways for place in way)])
    graph = PlaceGraphBlock(list(places), list(ways), here, {here: ("you", *present)})
    return View((graph, *_tables(seen)), f"Morrowind: {here}")


def _tables(seen: PerceptionOutput) -> Iterator[Block]:
    rows = []
    for place, e in enumerate(seen.nearby_entities, 1):
        liking = "" if e.disposition is None else str(e.disposition)
        rows.append((str(place), _plain(e.name), e.entity_type, number(round(e.distance, 1)), liking))
    if rows:
        yield TableBlock(("nr", "what", "kind", "away", "likes you"), rows, "Nearby")
    if seen.inventory:
        items = enumerate(seen.inventory, len(rows) + 1)
        carried = [(str(n), _plain(i.name), str(i.count), "yes" if i.equipped else "") for n, i in items]
        yield TableBlock(("nr", "item", "count", "equipped"), carried, "Carried")
    if seen.dialogue is not None and seen.dialogue.text:
        yield TextBlock(sanitize(seen.dialogue.text, _SPEECH), _plain(seen.dialogue.entity_id))


def _plain(text: str) -> str:
    return sanitize(text, _NAME)
