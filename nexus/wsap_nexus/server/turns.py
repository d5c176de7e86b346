"""A turn of a seat as a page shows it to the person who plays there: what it sees, and what it can do, in words.

It is made from the seat's own observation, view and actions, so that it holds no more than the seat may know.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query, Response

from wsap_core.errors import WsapError
from wsap_core.protocol import Observation, ParamDef
from wsap_core.untrusted import single_line
from wsap_llm.reply.schema import TEXT_LIMIT, legal_actions
from wsap_nexus.http.replies import pending
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.outside.external import ExternalAgent
from wsap_nexus.server.seats import check_external, meters_in, own_view, place_of, the_agent
from wsap_nexus.server.serializers import json_response, observation_json, shortened, view_json
from wsap_nexus.terminal.keyboard.keymap import ASIDE, keymap

# Any, in this module: JSON.

MOST_CHOICES = 400
"""Maximum number of the values of a parameter that are listed; more are typed."""


After = Annotated[str, Query(max_length=64, description="The `turn` that is known; the reply is the one after it.")]


async def turn_of(nexus: Nexus, agent_id: str, wait: float, after: str = "") -> Response:
    """Reply with an agent's next turn, or 202 after `wait` seconds without one.

    Args:
        after: the turn that the caller knows, which is not told again.

    Raises:
        NotExternalError: a policy of the nexus decides for the agent.
    """
    check_external(nexus, the_agent(nexus, agent_id))
    try:
        async with asyncio.timeout(wait):
            seat, observation = await nexus.live.external.observation(agent_id, after)
    except TimeoutError:
        return pending("There is nothing to decide yet.")
    name, (place, session) = seat.turn, place_of(nexus, agent_id)
    stay, view = nexus.live.sessions.get(agent_id), None
    if stay is not None:
        with suppress(WsapError):  # then it is played without a picture
            view = view_json(await own_view(nexus, stay))
        for block in view["blocks"] if view is not None else ():
            for one in block.get("seats", ()):
                # Of the others it may not know who they are.
                one["who"] = agent_id if one["who"] == stay.seat_name else one["who"]
    title = next((info.name for info in nexus.entrance.games() if info.id == place), "Home")
    return json_response(
        {
            "turn": name,
            "place": place,
            "title": single_line(title)[:80],
            "session": session,
            "seconds_left": seat.seconds_left,
            "description": shortened(seat.description),
            "view": view,
            "seen": observation_json(observation, {} if stay is None else meters_in(nexus, stay)),
            "actions": playable(seat, observation),
        }
    )


def playable(seat: ExternalAgent, observation: Observation) -> list[dict[str, Any]]:
    """Return the actions of a seat for a person, those that are possible now and those that are not with the reason."""
    space = seat.action_space
    offered = {action.name: action for action in legal_actions(space, observation)}
    keys = {name: key for key, name in keymap(space).items()}
    phrases, known_as = observation.phrases(), _names(observation)
    found = []
    for action in space.actions:
        possible = offered.get(action.name)
        told = observation.is_available(action.name)
        if possible is None and (action.unlisted or told is None):
            continue
        said = phrases.get(action.name, "") if possible is not None else ""
        found.append(
            {
                "name": action.name,
                "words": single_line(said or action.name.replace("_", " "))[:200],
                "description": shortened(action.description, 500),
                "aside": action.category in ASIDE,
                "key": keys.get(action.name, ""),
                "possible": possible is not None,
                "reason": "" if possible is not None or told is None else shortened(single_line(told.reason), 300),
                "parameters": [_asked(p, known_as) for p in (possible or action).parameters],
            }
        )
    return found


def _names(observation: Observation) -> dict[str, str]:
    """Return word -> the name by which a person knows it, or the number if several have that name."""
    known: dict[str, str] = {}
    for typed, word in observation.typed_names().items():
        if not known.get(word, "0").isdecimal():
            continue  # a name says more than a number
        known[word] = typed
    return known


def _asked(parameter: ParamDef, known_as: dict[str, str]) -> dict[str, Any]:
    """Return a parameter as a person is asked for it: by a choice, a number, a text, or JSON."""
    schema = parameter.json_schema()
    asked: dict[str, Any] = {
        "name": parameter.name,
        "words": single_line(parameter.name.replace("_", " "))[:80],
        "hint": shortened(parameter.description or ("" if parameter.choices() else parameter.spec), 300),
        "optional": parameter.optional,
        "kind": "json",
        "choices": [],
        "low": None,
        "high": None,
    }
    values = schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= MOST_CHOICES:
        words = [known_as.get(str(value), str(value)) for value in values]
        choices = [
            {"value": value, "words": single_line(said)[:200]} for value, said in zip(values, words, strict=True)
        ]
        return asked | {"kind": "choice", "choices": choices}
    if schema.get("type") in ("integer", "number"):
        kind = "whole" if schema["type"] == "integer" else "number"
        return asked | {"kind": kind, "low": schema.get("minimum"), "high": schema.get("maximum")}
    if schema.get("type") == "string":
        return asked | {"kind": "text", "high": schema.get("maxLength", TEXT_LIMIT)}
    return asked
