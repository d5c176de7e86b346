"""What travels: the requests of clients, checked, and what they are told, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionDef, ActionSpace, Observation
from wsap_core.protocol.availability import Possible
from wsap_core.protocol.wire import encode
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.untrusted import strip_control
from wsap_openenv.sessions import Session, Told
from wsap_openenv.tasks import SPLITS, Task

# Any, in this module: JSON.

LONGEST_ID = 255
"""Maximum characters of an episode's id."""


class InvalidError(UsageError):
    """A message of a client has not the form that it must have."""

    code = "VALIDATION_ERROR"


def reset_of(data: Mapping[str, Any]) -> tuple[int | None, str | None]:
    """Return the seed, if any, and the episode's id of a reset; other parameters are ignored, as trainers send theirs.

    Raises:
        InvalidError: a parameter has another type, or the seed is out of range.
        NoTaskError: there is no such task.
    """
    seed, episode, split, index = (data.get(name) for name in ("seed", "episode_id", "split", "index"))
    if seed is not None and (type(seed) is not int or not 0 <= seed <= SEED_LIMIT):
        raise InvalidError(f"The seed must be a whole number from 0 to {SEED_LIMIT}.")
    if episode is not None and (not isinstance(episode, str) or not 0 < len(episode) <= LONGEST_ID):
        raise InvalidError(f"The episode_id must be a text of at most {LONGEST_ID} characters.")
    if index is not None:
        if type(index) is not int or not isinstance(split, str):
            raise InvalidError("A task is named by its split, a text, and its index, a whole number.")
        if seed is not None and seed != Task(split, index).seed:
            raise InvalidError(f"The seed {seed} is not that of task {index} of {split!r}; leave one of them out.")
        seed = Task(split, index).seed
    return seed, episode


def action_of(data: Mapping[str, Any]) -> Action:
    """Return the action of a step; InvalidError if it has not the form of one. Whether it is legal, the game says."""
    name, parameters, reasoning = (data.get(key) for key in ("action", "parameters", "reasoning"))
    if not isinstance(name, str):
        raise InvalidError('A step has the name of an action: {"action": NAME, "parameters": {...}}.')
    if parameters is not None and not isinstance(parameters, dict):
        raise InvalidError("The parameters of an action are an object: name -> value.")
    if reasoning is not None and not isinstance(reasoning, str):
        raise InvalidError("The reasoning is a text.")
    if unknown := data.keys() - {"action", "parameters", "reasoning", "metadata"}:
        raise InvalidError(f"A step has no {min(unknown)[:60]!r}; it has an action, parameters and reasoning.")
    return Action(name, parameters or {}, reasoning)


def observation_of(session: Session, told: Told, space: ActionSpace, *, structured: bool) -> dict[str, Any]:
    """Return an observation as clients get it, with reward, end and metadata."""
    seen, result = told.observation, told.result
    metadata: dict[str, Any] = {"episode_id": session.episode_id, "seed": session.seed}
    if session.run is not None:
        metadata["run"] = session.run.run_id
    if told.done:
        metadata["truncated"] = result is not None and result.truncated
        if session.run is not None and session.run.summary is not None:
            metadata["trajectory_hash"] = session.run.summary["trajectory_hash"]
    inner = {
        "text": strip_control(seen.to_text()),
        "legal_actions": [] if told.done else legal_actions(space, seen),
        "success": result is None or result.success,
        "message": "" if result is None else strip_control(result.message),
        "achievements": [] if result is None else list(result.achievements),
        "metadata": metadata,
    }
    if structured:
        inner["state"] = encode(seen)
    return {"observation": inner, "reward": told.reward, "done": told.done, "metadata": metadata}


def legal_actions(space: ActionSpace, seen: Observation) -> list[dict[str, Any]]:
    """Return the actions that are possible now, with the choices for their parameters where these are known."""
    if seen.available_actions is None:
        return [{"action": name} for name in space.listed().names]
    return [
        {
            "action": each.name,
            **({"choices": encode(each.choices)} if isinstance(each, Possible) and each.choices else {}),
        }
        for each in seen.available_actions
        if each.available
    ]


def state_of(session: Session, game: str) -> dict[str, Any]:
    """Return the state of a session, as clients ask for it."""
    run = session.run
    return {
        "episode_id": session.episode_id,
        "step_count": session.steps,
        "game": game,
        "run": None if run is None else run.run_id,
        "seed": session.seed,
        "done": run is not None and run.over,
    }


# --- schemas ------------------------------------------------------------------------------------------

_TEXT, _BOOL = {"type": "string"}, {"type": "boolean"}
_METADATA = {
    "type": "object",
    "description": "The episode's id, seed and run; at its end whether it was truncated, and its trajectory hash.",
}
STATE: Mapping[str, Any] = {
    "type": "object",
    "title": "State",
    "properties": {
        "episode_id": {"type": ["string", "null"]},
        "step_count": {"type": "integer", "minimum": 0, "description": "Step messages, also of refused actions."},
        "game": _TEXT,
        "run": {"type": ["string", "null"], "description": "Its record: wsap replay RUN."},
        "seed": {"type": ["integer", "null"]},
        "done": _BOOL,
    },
    "required": ["step_count"],
}


def observation_schema(*, structured: bool) -> dict[str, Any]:
    """Return the JSON Schema of observations."""
    properties: dict[str, Any] = {
        "text": {**_TEXT, "description": "What a language model reads."},
        "legal_actions": {
            "type": "array",
            "items": {"type": "object", "properties": {"action": _TEXT, "choices": {"type": "object"}}},
        },
        "success": {**_BOOL, "description": "False if the action was refused, which still counts as a step."},
        "message": _TEXT,
        "achievements": {"type": "array", "items": _TEXT},
        "reward": {"type": ["number", "null"], "description": "Of this step."},
        "done": _BOOL,
        "metadata": _METADATA,
        **({"state": {"type": "object"}} if structured else {}),
    }
    return {"type": "object", "title": "Observation", "properties": properties, "required": ["text"]}


def action_schema(space: ActionSpace) -> dict[str, Any]:
    """Return the JSON Schema of actions: one object for all, and the parameters of each in `$defs`."""
    listed = space.listed().actions
    described = "; ".join(f"{each.name}: {each.description}" for each in listed if each.description)
    return {
        "type": "object",
        "title": "GameAction",  # of "Action", verifiers thinks that it can only call tools
        "properties": {
            "action": {**_TEXT, "enum": [each.name for each in listed], "description": described},
            "parameters": {
                "type": "object",
                "description": "Values by name; $defs has the schema for each action that takes any.",
            },
            "reasoning": {**_TEXT, "description": "Why, for the record."},
        },
        "required": ["action"],
        "$defs": {each.name: tool_schema(each) for each in listed if each.parameters},
    }


def tool_schema(action: ActionDef) -> dict[str, Any]:
    """Return the JSON Schema of an action's parameters, with their descriptions."""
    schema = action.json_schema()
    for parameter in action.parameters:
        says = parameter.description or (parameter.spec if parameter.choices() is None else "")
        if says:
            schema["properties"][parameter.name] = {**schema["properties"][parameter.name], "description": says}
    return schema


def splits() -> list[dict[str, str]]:
    """Return the splits, as clients see them."""
    return [{"name": name, "type": name} for name in SPLITS]
