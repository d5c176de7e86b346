"""The actions of the world `morrowind`: the seed's commands, which of them are legal by a perception, and back."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources

from pydantic import TypeAdapter

from wsap_core.protocol import Action, ActionAvailability, ActionSpace
from wsap_core.protocol.availability import Possible, choices_of
from wsap_core.protocol.values import JsonValue
from wsap_tes3mp.protocol.perception import PerceptionOutput

_LIVING = ("npc", "creature", "player")
"""Entity types that can be fought."""
_KINDS = {"item_id": "you carry", "topic": "to talk about", "choice_idx": "to answer"}
"""Parameter -> what its values are, in a refusal; of all others, in sight."""
NEVER = "unavailable"
"""The fidelity of what an engine does not have."""

ACTION_SPACE = TypeAdapter(ActionSpace).validate_python(
    tomllib.loads(resources.files(__package__).joinpath("actions.toml").read_text("utf-8"))
)
"""All actions: the seed's commands with the seed's parameters, one action for each way to give them."""
_COMMANDS = {"walk_to": "move_to", "answer": "dialogue"}
"""Action -> its command, where that has another name."""


def command_of(action: str) -> str:
    """Return the command that an action is."""
    return _COMMANDS.get(action, action)


def availability(seen: PerceptionOutput) -> list[ActionAvailability]:
    """Return what is legal by a perception, with the ids and topics that there are."""
    return [_without(seen, name) or _with_choices(seen, name) for name in ACTION_SPACE.names]


def refusal(action: Action, seen: PerceptionOutput) -> str:
    """Return why a declared action is illegal by a perception; empty where it is legal."""
    told = _without(seen, action.name)
    if told is not None:
        return told.reason
    given = action.parameters
    if action.name == "interact" and given.get("interaction_type") == "drop" and seen.inventory is not None:
        ids = [item.item_id for item in seen.inventory]
        return "" if given["entity_id"] in ids else f"you carry no {given['entity_id']!r}; you carry: {_some(ids)}"
    for name, possible in choices_of(_with_choices(seen, action.name)).items():
        if name in given and str(given[name]) not in possible:
            kind = _KINDS.get(name, "in sight")
            return f"there is no {given[name]!r} {kind}; there is: {_some(possible)}"
    return ""


def command_params(action: Action) -> dict[str, JsonValue]:
    """Return the parameters of the command that an action is."""
    return {name: value for name, value in action.parameters.items() if value is not None}


def _without(seen: PerceptionOutput, name: str) -> ActionAvailability | None:
    """Return that an action is impossible now, and why; None where it is possible."""
    why = ""
    talk = seen.dialogue
    if (seen.fidelity or {}).get(f"command.{command_of(name)}") == NEVER:
        why = "this engine can't do that"
    elif name in ("move_to", "interact") and not (seen.nearby_entities or (name == "interact" and _carried(seen))):
        why = "nothing is in sight"
    elif name == "combat_action" and not any(e.entity_type in _LIVING for e in seen.nearby_entities):
        why = "nobody is in sight"
    elif name == "use_item" and not _carried(seen):
        why = "you carry nothing"
    elif name == "answer" and (talk is None or not talk.choices):
        why = "no answers are listed"
    elif name == "dialogue" and talk is not None and not talk.topics:
        why = "answer first" if talk.choices else "there is nothing to talk about"
    elif name == "dialogue" and talk is None:
        known = seen.sequence is not None and (seen.fidelity or {}).get("dialogue") != NEVER
        if known or not any(e.entity_type == "npc" for e in seen.nearby_entities):
            why = "no dialogue is open; interact with somebody first"
    return ActionAvailability(name, False, why) if why else None


def _carried(seen: PerceptionOutput) -> bool:
    return bool(seen.inventory) if seen.inventory is not None else seen.inventory_summary.item_count > 0


def _with_choices(seen: PerceptionOutput, name: str) -> ActionAvailability:
    found = {parameter: tuple(words) for parameter, words in _choices(seen, name) if words}
    return Possible(name, choices=found) if found else ActionAvailability(name)


def _choices(seen: PerceptionOutput, name: str) -> Iterator[tuple[str, Sequence[str]]]:
    ids = [e.entity_id for e in seen.nearby_entities]
    match name:
        case "move_to":
            yield "target_entity_id", ids
        case "interact":
            # Whoever carries too much has to drop something.
            heavy = seen.inventory if seen.inventory_summary.encumbrance_pct > 1 else None
            yield "entity_id", [*ids, *(item.item_id for item in heavy or ())]
        case "use_item":
            yield "item_id", [item.item_id for item in seen.inventory or ()]
            yield "target_entity_id", ids
        case "combat_action":
            yield "target_entity_id", [e.entity_id for e in seen.nearby_entities if e.entity_type in _LIVING]
        case "dialogue" if seen.dialogue is not None:
            yield "entity_id", [seen.dialogue.entity_id]
            yield "topic", seen.dialogue.topics
        case "answer" if seen.dialogue is not None:
            yield "entity_id", [seen.dialogue.entity_id]
            yield "choice_idx", [str(number) for number in range(len(seen.dialogue.choices))]
        case "dialogue":
            yield "entity_id", [e.entity_id for e in seen.nearby_entities if e.entity_type == "npc"]


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
