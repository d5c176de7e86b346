"""Protocol types as text for language models, in the seed specification's layout.

Pure functions; golden files guard their output, because prompts are an interface. Whatever a
game or player wrote is data: line breaks and control characters are taken out of it, so that it
can't forge a section of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wsap_core.protocol.actions import ActionDef, ActionSpace, ParamDef
from wsap_core.protocol.avatars import EmbodiedObservation
from wsap_core.protocol.observation import Observation
from wsap_core.protocol.spatial import Entity, Terrain
from wsap_core.untrusted import one_line

__all__ = [
    "entity_line",
    "one_line",
    "render_action_space",
    "render_avatar",
    "render_observation",
    "system_message",
    "terrain_line",
    "user_message",
]

SYSTEM_TEMPLATE = """\
You are an agent playing {game_name}.

{game_description}

Available actions:
{action_space}

Your goal is to survive and accomplish objectives. Respond with a JSON action."""

QUESTION = 'What action do you take? Respond with JSON: {"action": "name", "params": {}, "reasoning": "why"}'


def system_message(game_name: str, game_description: str, action_space: ActionSpace) -> str:
    """Return the system message that is sent once, at the start of a session."""
    return SYSTEM_TEMPLATE.format(
        game_name=one_line(game_name),
        game_description=_dedent(game_description),
        action_space=render_action_space(action_space),
    )


def user_message(observation: Observation) -> str:
    """Return the user message of one step: the observation, then the question."""
    return f"{observation.to_text()}\n\n{QUESTION}"


def render_action_space(space: ActionSpace) -> str:
    """Return one line per action: its form, what it does, and when it is valid."""
    return "\n".join(_action_line(action) for action in space.actions)


def render_observation(observation: Observation, *, extra_sections: Sequence[tuple[str, str]] = ()) -> str:
    """Return an observation as text; sections that are empty are left out.

    Args:
        observation: what to render.
        extra_sections: (title, body) pairs of a world's own, shown after NEARBY.
    """
    o = observation
    sections: list[tuple[str, str]] = [
        ("TIME", one_line(o.time_of_day) if o.time_of_day else ""),
        ("STATUS", _pairs(o.status)),
        ("INVENTORY", _pairs(o.inventory)),
        ("EFFECTS", _bullets(_effect(e.name, e.description, e.remaining) for e in o.active_effects)),
        ("LOCATION", one_line(o.location.description or o.location.region or _coordinates(o))),
        ("NEARBY", _bullets([*map(entity_line, o.nearby_entities), *map(terrain_line, o.nearby_terrain)])),
        *extra_sections,
        ("RECENT EVENTS", _bullets(e.description for e in o.recent_events)),
        ("MESSAGES", _bullets(_message(m.sender, m.type, m.content) for m in o.messages)),
        (
            "CURRENT GOALS",
            _bullets(_goal(g.description or g.id, g.progress, g.hints) for g in o.current_goals),
        ),
    ]
    parts = [f"Step {o.step}"]
    parts += [f"{title}:\n{body}" for title, body in sections if body]
    return "\n\n".join(parts)


def render_avatar(observation: EmbodiedObservation) -> str:
    """Return the body's section, as the protocol lays it out."""
    a = observation.avatar
    return (
        f"\n=== AVATAR: {one_line(a.name)} ===\n"
        f"Health: {_number(a.health)}/{_number(a.max_health)}\n"
        f"Position: ({', '.join(_number(c) for c in a.position)})\n"
        f"Facing: {one_line(observation.facing)} | Stance: {one_line(observation.stance)}\n"
    )


def entity_line(entity: Entity) -> str:
    """Return an entity in a few words: its own description, or one made from its fields."""
    if entity.description:
        return one_line(entity.description)
    text = one_line(entity.type)
    if entity.name:
        text = f"{one_line(entity.name)} ({text})"
    if entity.state:
        text += f", {one_line(entity.state)}"
    return f"{text}, {_where(entity.direction, entity.distance)}"


def terrain_line(terrain: Terrain) -> str:
    """Return a kind of ground in a few words: what, where, and whether it can be walked on."""
    text = f"{one_line(terrain.type)}, {_where(terrain.direction, terrain.distance)}"
    return text if terrain.passable else text + " (blocked)"


def _dedent(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _action_line(action: ActionDef) -> str:
    signature = ", ".join(_parameter(p) for p in action.parameters)
    line = f"- {one_line(action.name)}" + (f"({signature})" if signature else "")
    if action.description:
        line += f": {one_line(action.description)}"
    if action.preconditions:
        line += f" [requires: {'; '.join(one_line(p) for p in action.preconditions)}]"
    return line


def _parameter(parameter: ParamDef) -> str:
    if parameter.schema is None or parameter.spec:  # beside a schema it says the same in words
        kind = one_line(parameter.spec)
    else:
        kind = json.dumps(dict(parameter.schema))
    return one_line(parameter.name) + ("?" if parameter.optional else "") + (f": {kind}" if kind else "")


def _pairs(values: Mapping[str, Any]) -> str:
    return "\n".join(f"{one_line(key)}: {_value(value)}" for key, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value) if isinstance(value, int | float) else one_line(value)


def _number(value: float) -> str:
    if isinstance(value, int):
        # Python refuses to write out more than 4300 digits, and no reader wants them.
        return str(value) if value.bit_length() < 1024 else "beyond counting"
    return str(int(value)) if value.is_integer() else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {one_line(line)}" for line in lines)


def _where(direction: str, distance: float | None) -> str:
    if distance is None:
        return one_line(direction)
    return one_line(direction) if distance == 0 else f"{_number(distance)} {one_line(direction)}"


def _coordinates(observation: Observation) -> str:
    return ", ".join(_number(c) for c in observation.location.coordinates)


def _effect(name: str, description: str, remaining: float | None) -> str:
    text = f"{name}: {description}" if description else name
    return text if remaining is None else f"{text} ({_number(remaining)} steps left)"


def _message(sender: str, kind: str, content: str) -> str:
    return f"{sender} ({kind}): {content}"


def _goal(description: str, progress: str | None, hints: Sequence[str]) -> str:
    text = f"{description} ({progress})" if progress else description
    return f"{text} - {'; '.join(hints)}" if hints else text
