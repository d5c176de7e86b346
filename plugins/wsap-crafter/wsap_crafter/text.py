"""Crafter's observation as text: the protocol's layout, with a map, and goals in short.

The prompt is paid for at every step. So the terrain is one line, the legend names only what is on
the map, and of the goals only those that can be reached next are spelt out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wsap_core.protocol import Entity, Goal, Terrain
from wsap_core.protocol.avatars import render_avatar
from wsap_core.protocol.observation import render_observation
from wsap_core.protocol.spatial import entity_line
from wsap_crafter.goals import NEXT
from wsap_crafter.observation import CrafterObservation
from wsap_crafter.sight import PLAYER_CHARACTER, WORDS


def render_crafter(observation: CrafterObservation) -> str:
    """Return the whole observation as text for a language model."""
    plain = replace(
        observation,
        status={**observation.status, "daylight": observation.daylight},
        nearby_entities=(),
        nearby_terrain=(),
        current_goals=_short_goals(observation.current_goals),
    )
    sections = [
        ("NEARBY", _nearby(observation.nearby_entities, observation.nearby_terrain)),
        ("MAP (north up, one character a cell)", _map(observation.local_map)),
        ("POSSIBLE NOW", _possible(observation)),
    ]
    return render_avatar(observation) + "\n" + render_observation(plain, extra_sections=sections)


def _nearby(entities: Sequence[Entity], terrain: Sequence[Terrain]) -> str:
    lines = [f"- {entity_line(entity)}" for entity in entities]
    if terrain:
        nearest = ", ".join(f"{t.type} {t.distance:g} {t.direction}" for t in terrain)
        lines.append(f"- nearest: {nearest}")
    return "\n".join(lines)


def _map(rows: tuple[str, ...]) -> str:
    present = sorted(set("".join(rows)) - {PLAYER_CHARACTER}, key=list(WORDS).index)
    legend = ", ".join(f"{'space' if c == ' ' else c} {WORDS[c]}" for c in (PLAYER_CHARACTER, *present))
    return "\n".join(f"|{row}|" for row in rows) + f"\n{legend}"


def _possible(observation: CrafterObservation) -> str:
    return ", ".join(action.name for action in observation.available_actions or () if action.available)


def _short_goals(goals: Sequence[Goal]) -> tuple[Goal, ...]:
    """Return the goals that can be reached next with their hints, and one line for the rest."""
    short = [Goal(goal.id, goal.id, goal.type, None, goal.hints) for goal in goals if goal.progress == NEXT]
    later = [goal.id for goal in goals if goal.progress != NEXT]
    if later:
        short.append(Goal("later", f"later: {', '.join(later)}"))
    return tuple(short)
