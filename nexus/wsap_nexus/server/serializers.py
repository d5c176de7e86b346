"""Sessions, observations, views and events as JSON-ready data of bounded size, for people who watch."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from wsap_core.errors import WireError
from wsap_core.protocol import GridMapBlock, ImageBlock, Observation, Selection, View
from wsap_core.protocol.wire import dumps, encode
from wsap_core.untrusted import single_line
from wsap_nexus.http.access.auth import record_json
from wsap_nexus.http.replies import BROWSER_HEADERS
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.events import Names, NexusEvent, why_ended
from wsap_nexus.store.json_values import finite
from wsap_nexus.terminal.story import action_text

LONGEST = 20_000
"""Maximum characters of a text."""

_MOST_ROWS = 400
_MOST_DETAILS = 40
_MOST_METERS = 8
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_PICTURE = 4 << 20


def json_response(body: object, request: Request | None = None, *, etag: str | None = None) -> Response:
    """Return a JSON response with the headers for browsers; 304 if the client has this ETag."""
    headers = {**BROWSER_HEADERS, "Cache-Control": "no-cache" if etag else "no-store"}
    if etag is not None:
        tag = f'W/"{etag}"'
        headers["ETag"] = tag
        if request is not None and request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
    try:
        text = dumps(body)
    except WireError:  # one odd number must not spoil a page about everybody
        text = dumps(finite(body))
    return Response(text, media_type="application/json", headers=headers)


def shortened(text: object, most: int = LONGEST) -> str:
    """Return a text cut to `most` characters."""
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[:most]}\n… ({len(whole) - most} more characters)"


def event_json(event: NexusEvent, names: Names) -> dict[str, Any]:
    """Return an event with its sentence."""
    gain = event.gained(names)
    return {
        **event.to_json(),
        "sentence": event.sentence(names),
        "name": names.who(event.agent_id) if event.agent_id else None,
        "minor": event.minor,
        "gain": None if gain is None else {"lead": gain.lead, "key": gain.key, "text": gain.text},
    }


def past_session_json(session: SessionRecord, *, private: bool) -> dict[str, Any]:
    """Return a session as a row of a list; its single actions are in its run."""
    found = record_json(session, private=private)
    if private:
        found["stats"] = {key: value for key, value in session.stats.items() if key != "done"}
    return found | {"ended": why_ended(session.reason) if session.closed else None}


def session_json(stay: LiveSession, *, private: bool) -> dict[str, Any]:
    """Return the state of a live session, with the agent's actions and gains if `private`.

    The number of actions is private, too: in some games it depends on the role.
    """
    session, step = stay.session, stay.last
    found: dict[str, Any] = {
        "agent": session.agent_id,
        "game": session.game,
        "world": session.world_id,
        "run": session.run_id,
        "session": session.id,
        "seat": stay.seat_name,
        "opened": session.opened,
        "paused": stay.controls.paused,
        "leaving": stay.stopped is not None,
    }
    if not private:
        return found
    found |= {
        "steps": stay.stats.steps,
        "reward": round(stay.stats.reward, 4),
        "achieved": len(stay.stats.achievements),
    }
    if step is not None:
        found |= {
            "action": action_text(step.action.name, step.action.parameters)[:200],
            "reasoning": single_line(step.action.reasoning or "")[:300],
            "success": step.result.success,
            "outcome": step.result.outcome,
            "message": single_line(step.result.message)[:300],
            "gained": step.result.reward,
            "achievements": [single_line(name)[:100] for name in list(step.result.achievements)[:10]],
            "forced": step.forced,
            "cause": single_line(step.info.cause)[:200] if step.info is not None else "",
        }
    return found


def observation_json(observation: Observation, meters: Mapping[str, float]) -> dict[str, Any]:
    """Return an observation as values, text and view; `meters` are those of its game."""
    try:
        view = view_json(observation.to_view())
    except Exception:  # the game's own code
        view = None
    return {
        "kind": type(observation).__name__,
        "text": shortened(observation.to_text()),
        "view": view,
        "status": _pairs(observation.status),
        "meters": meters_of(observation.status, meters),
        "inventory": _pairs(observation.inventory),
        "location": encode(observation.location),
        "step": observation.step,
        "time_of_day": observation.time_of_day,
        "events": [shortened(event.description, 500) for event in list(observation.recent_events)[-20:]],
        "goals": [
            {"description": shortened(goal.description, 300), "progress": goal.progress}
            for goal in list(observation.current_goals)[:12]
        ],
        "messages": [encode(message) for message in list(observation.messages)[-20:]],
    }


def meters_of(status: Mapping[str, Any], meters: Mapping[str, float]) -> dict[str, float]:
    """Return the meters of a game that a status has a number for, with the highest value of each."""
    return {
        str(name)[:80]: most
        for name, most in list(meters.items())[:_MOST_METERS]
        if isinstance(value := status.get(name), int | float)
        and not isinstance(value, bool)
        and 0 <= value <= most < math.inf
    }


def _pairs(mapping: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in list(mapping.items())[:60]:
        plain = value if isinstance(value, bool | int | float) else shortened(value, 120)
        found[str(key)[:80]] = plain
    return found


def view_json(view: View | None) -> dict[str, Any] | None:
    """Return a view with validated pictures and bounded size; None for an empty one."""
    if view is None or not view.blocks:
        return None
    shown = [_block(block) for block in list(view.blocks)[:20]]
    selections = [_selection(selection) for selection in list(view.selections)[:10]]
    words = {"title": shortened(view.title, 200), "caption": shortened(view.caption, 300)}
    return {**words, "blocks": shown, "selections": selections}


def _selection(selection: Selection) -> dict[str, Any]:
    bounded = replace(selection, choices=[shortened(choice, 200) for choice in list(selection.choices)[:_MOST_ROWS]])
    found: dict[str, Any] = encode(bounded)
    return found


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, ImageBlock):
        if not _is_png(block.base64):
            return {"kind": "text", "title": "", "text": f"[a picture that is not a PNG: {shortened(block.alt, 200)}]"}
        return {
            "kind": "image",
            "base64": block.base64,
            "width": block.width,
            "height": block.height,
            "alt": shortened(block.alt, 2000),
        }
    if isinstance(block, GridMapBlock):
        block = replace(block, rows=[row[:400] for row in list(block.rows)[:_MOST_ROWS]])
    found: dict[str, Any] = encode(block)
    for key in ("rows", "lines", "entries", "seats", "links"):
        if isinstance(found.get(key), list):
            # The beginning of a table, but the end of a conversation or timeline.
            rows = found[key]
            found[key] = rows[-_MOST_ROWS:] if key in ("lines", "entries") else rows[:_MOST_ROWS]
    for entry in found.get("entries", ()):
        entry["text"] = shortened(entry["text"])
        entry["details"] = [shortened(line) for line in entry["details"][:_MOST_DETAILS]]
    if "text" in found:
        found["text"] = shortened(found["text"])
    return found


def _is_png(text: str) -> bool:
    if len(text) > _MOST_PICTURE:
        return False
    try:
        return base64.b64decode(text[:16], validate=True).startswith(_PNG[:8]) and text.isascii()
    except (binascii.Error, ValueError):
        return False
