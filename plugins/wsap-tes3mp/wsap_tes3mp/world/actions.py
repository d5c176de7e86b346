"""The actions of the world `morrowind`: the seed's commands, their legality by a perception, and their parameters."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import resources

from pydantic import TypeAdapter

from wsap_core.protocol import Action, ActionAvailability, ActionSpace
from wsap_core.protocol.availability import Possible
from wsap_core.protocol.values import JsonValue
from wsap_tes3mp.protocol.errors import SEED_VERSION
from wsap_tes3mp.protocol.perception import NearbyEntity, PerceptionOutput

_LIVING = ("npc", "creature", "player")
"""Entity types that can be fought."""
_KINDS = {"item_id": "you carry", "topic": "to talk about", "choice_idx": "to answer"}
"""Parameter -> what a refusal says of its values; "in sight" for all others."""
_BY_PLACE = f"this bridge speaks protocol {SEED_VERSION}, which only goes to coordinates (walk_to)"
NEVER = "unavailable"
"""The fidelity of what an engine lacks."""

ACTION_SPACE = TypeAdapter(ActionSpace).validate_python(
    tomllib.loads(resources.files(__package__).joinpath("actions.toml").read_text("utf-8"))
)
"""All actions: the seed's commands and parameters, one action per way to give them."""
_BY_HAND = ("interact", "use_item", "combat_action", "dialogue")
"""The actions on what is within reach, if the engine tells its reach."""
_COMMANDS = {"walk_to": "move_to", "answer": "dialogue"}
"""Action -> its command, if named differently."""


def command_of(action: str) -> str:
    """Return the command of an action."""
    return _COMMANDS.get(action, action)


def availability(seen: PerceptionOutput) -> list[ActionAvailability]:
    """Return the legal actions by a perception, with the ids and topics to choose from."""
    near = seen.model_copy(update={"nearby_entities": tuple(e for e in seen.nearby_entities if _in_reach(e, seen))})
    why, choices = _impossible(seen) | _out_of_reach(seen, near), _choices(seen)
    choices |= {name: chosen for name, chosen in _choices(near).items() if name in _BY_HAND}
    found = [ActionAvailability(name, not why.get(name), why.get(name, "")) for name in ACTION_SPACE.names]
    return [Possible(a.name, choices=c) if a.available and (c := choices.get(a.name)) else a for a in found]


def refusal(action: Action, seen: PerceptionOutput) -> str:
    """Return why an action is illegal by a perception; "" if it is legal."""
    if why := _impossible(seen).get(action.name):
        return why
    given = action.parameters
    if action.name == "interact" and seen.inventory is not None:
        ids, what = [item.item_id for item in seen.inventory], given.get("entity_id")
        if given.get("interaction_type") == "drop":
            return "" if what in ids else f"you carry no {what!r}; you carry: {_some(ids)}"
        if given.get("interaction_type") and what in ids and not _is_near(what, seen):
            return f"you carry {what!r}; it can only be dropped, or used with use_item"
    for name, possible in _choices(seen).get(action.name, {}).items():
        if name in given and str(given[name]) not in possible:
            kind = _KINDS.get(name, "in sight")
            return f"there is no {given[name]!r} {kind}; there is: {_some(possible)}"
    return ""


def command_params(action: Action, seen: PerceptionOutput) -> dict[str, JsonValue]:
    """Return the parameters of an action's command; what an agent carries is dropped, unless another type is given."""
    given = {name: value for name, value in action.parameters.items() if value is not None}
    what = given.get("entity_id")
    if action.name == "interact" and any(what == item.item_id for item in seen.inventory or ()):
        return given if _is_near(what, seen) else {"interaction_type": "drop"} | given
    return given


def _is_near(what: object, seen: PerceptionOutput) -> bool:
    return any(one.entity_id == what for one in seen.nearby_entities)


def _impossible(seen: PerceptionOutput) -> dict[str, str]:
    """Return action -> why it is impossible now; "" if it is possible."""
    kinds, talk, known = {one.entity_type for one in seen.nearby_entities}, seen.dialogue, seen.fidelity or {}
    carried = bool(seen.inventory) if seen.inventory is not None else seen.inventory_summary.item_count > 0
    if talk is not None:
        silent = "" if talk.topics else "answer first" if talk.choices else "there is nothing to talk about"
    else:
        told = seen.sequence is not None and known.get("dialogue") != NEVER
        silent = "no dialogue is open; interact with somebody first" if told or "npc" not in kinds else ""
    found = {
        "move_to": ("" if kinds else "nothing is in sight") if _to_entities(seen) else _BY_PLACE,
        "interact": "" if kinds or carried else "nothing is in sight",
        "combat_action": "" if kinds.intersection(_LIVING) else "nobody is in sight",
        "use_item": "" if carried else "you carry nothing",
        "answer": "" if talk is not None and talk.choices else "no answers are listed",
        "dialogue": silent,
    }
    never = [name for name in ACTION_SPACE.names if known.get(f"command.{command_of(name)}") == NEVER]
    return found | dict.fromkeys(never, "this engine can't do that")


def _in_reach(one: NearbyEntity, seen: PerceptionOutput) -> bool:
    return seen.reach is None or one.distance <= seen.reach


def _out_of_reach(seen: PerceptionOutput, near: PerceptionOutput) -> dict[str, str]:
    """Return the actions by hand that are possible by what is in sight and not by what is within reach, and why."""
    if seen.reach is None:
        return {}
    before, now = _impossible(seen), _impossible(near)
    far = f"nothing that it is for is within your reach of {seen.reach:g}; move_to it first"
    return {name: far for name in _BY_HAND if now.get(name) and not before.get(name)}


def _to_entities(seen: PerceptionOutput) -> bool:
    """Whether the bridge takes `target_entity_id`, a parameter of 1.0.1."""
    return not seen.protocol_version.startswith("0.") and seen.protocol_version != SEED_VERSION


def _choices(seen: PerceptionOutput) -> dict[str, dict[str, Sequence[str]]]:
    """Return action -> parameter -> the values to choose from."""
    ids, living, people = (
        [one.entity_id for one in seen.nearby_entities if kinds is None or one.entity_type in kinds]
        for kinds in (None, _LIVING, ("npc",))
    )
    carried, talk = [item.item_id for item in seen.inventory or ()], seen.dialogue
    found: dict[str, dict[str, Sequence[str]]] = {
        "move_to": {"target_entity_id": ids},
        "interact": {"entity_id": list(dict.fromkeys([*ids, *carried]))},
        "use_item": {"item_id": carried, "target_entity_id": ids},
        "combat_action": {"target_entity_id": living},
        "dialogue": {"entity_id": people},
    }
    if talk is not None:
        numbers = [str(number) for number in range(len(talk.choices))]
        found["dialogue"] = {"entity_id": [talk.entity_id], "topic": talk.topics}
        found["answer"] = {"entity_id": [talk.entity_id], "choice_idx": numbers}
    return {name: {key: tuple(v) for key, v in choices.items() if v} for name, choices in found.items()}


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
