"""The requests that a client makes, each described once for both clients."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from wsap_core.protocol import Action, ActionResult, ActionSpace, Avatar, Observation, Receipt, TransitPackage, View
from wsap_core.protocol.wire import Codec, encode
from wsap_nexus.client.parts import (
    Answered,
    Ask,
    DiaryEntry,
    Entered,
    Exchange,
    Left,
    RefusedError,
    Registration,
    Seen,
    Whole,
)
from wsap_nexus.hub.place import NexusObservation
from wsap_nexus.store.entities import AgentIdentity, SessionRecord
from wsap_nexus.worlds.game_info import GameInfo

# Any, in this module: JSON.

T = TypeVar("T")


class Asks:
    """Describes requests, and reads answers.

    Args:
        wire_types: classes of games' own messages, so that they are not read as their bases.
    """

    def __init__(self, wire_types: Iterable[type] = ()) -> None:
        self._codec = Codec([NexusObservation, *wire_types])

    # --- agents -----------------------------------------------------------------------------------

    def register(
        self, agent_id: str, name: str, persona: str, policies: Mapping[str, Mapping[str, Any]] | None
    ) -> Ask[Registration]:
        """Register an agent."""
        body: dict[str, Any] = {"id": agent_id, "name": name, "persona": persona}
        if policies is not None:
            body["policies"] = encode(policies)
        return Ask("POST", "/nexus/agents", self._registered, body)

    def agents(self, after: str, limit: int) -> Ask[tuple[list[AgentIdentity], str | None]]:
        """List a page of agents."""
        read = lambda data: ([self._part(AgentIdentity, a) for a in data["agents"]], data.get("next"))  # noqa: E731
        return Ask("GET", "/nexus/agents", read, params={"after": after, "limit": limit})

    def agent(self, agent_id: str) -> Ask[Whole]:
        """Look at an agent."""
        return Ask("GET", f"/nexus/agents/{quote(agent_id, safe='')}", self._whole)

    def change(self, agent_id: str, values: Mapping[str, Any]) -> Ask[AgentIdentity]:
        """Change who an agent is."""
        read = lambda data: self._part(AgentIdentity, data["agent"])  # noqa: E731
        return Ask("PATCH", f"/nexus/agents/{quote(agent_id, safe='')}", read, encode(values))

    def observation(self, agent_id: str) -> Ask[Seen]:
        """See what an agent sees."""
        return Ask("GET", f"/nexus/agents/{quote(agent_id, safe='')}/observation", self._seen, waits=True)

    def action_space(self, agent_id: str) -> Ask[ActionSpace]:
        """See what can be done where an agent is."""
        read = lambda data: self._part(ActionSpace, data["action_space"])  # noqa: E731
        return Ask("GET", f"/nexus/agents/{quote(agent_id, safe='')}/action-space", read, waits=True)

    def description(self, agent_id: str) -> Ask[str]:
        """Be told where an agent is."""
        path = f"/nexus/agents/{quote(agent_id, safe='')}/description"
        return Ask("GET", path, lambda data: str(data["description"]), waits=True)

    def act(self, agent_id: str, action: Action, key: str | None) -> Ask[ActionResult]:
        """Act."""
        read = lambda data: self._part(ActionResult, data["result"])  # noqa: E731
        path = f"/nexus/agents/{quote(agent_id, safe='')}/act"
        return Ask("POST", path, read, encode(action), key=key or new_key(), waits=True)

    def send(self, agent_id: str, content: str, to: str | None) -> Ask[list[str]]:
        """Send a message."""
        kind = "broadcast" if to is None else "direct"
        body = {"content": content, "kind": kind, "to": to}
        path = f"/nexus/agents/{quote(agent_id, safe='')}/messages"
        return Ask("POST", path, lambda data: list(data["recipients"]), body)

    def talk(self, agent_id: str, text: str, key: str | None) -> Ask[Answered]:
        """Say something to an agent."""
        read = lambda data: Answered(str(data["text"]), str(data["how"]))  # noqa: E731
        path = f"/nexus/agents/{quote(agent_id, safe='')}/talk"
        return Ask("POST", path, read, {"text": text}, key=key or new_key(), waits=True)

    def talked(self, agent_id: str, before: int | None) -> Ask[tuple[list[Exchange], int | None]]:
        """Look at a page of what was said to an agent."""

        def read(data: Any) -> tuple[list[Exchange], int | None]:
            names = ("number", "time", "said", "reply", "how")
            return [Exchange(**{name: each[name] for name in names}) for each in data["exchanges"]], data.get("next")

        return Ask("GET", f"/nexus/agents/{quote(agent_id, safe='')}/talk", read, params=_older(before))

    def diary(self, agent_id: str, before: int | None) -> Ask[tuple[list[DiaryEntry], int | None]]:
        """Look at a page of an agent's diary."""

        def read(data: Any) -> tuple[list[DiaryEntry], int | None]:
            names = ("number", "time", "text", "game", "session", "own_words")
            return [DiaryEntry(**{name: each[name] for name in names}) for each in data["entries"]], data.get("next")

        return Ask("GET", f"/nexus/agents/{quote(agent_id, safe='')}/diary", read, params=_older(before))

    # --- worlds -----------------------------------------------------------------------------------

    def games(self) -> Ask[list[GameInfo]]:
        """List the games."""
        return Ask("GET", "/nexus/games", lambda data: [self._part(GameInfo, g) for g in data["games"]])

    def add_game(self, base_url: str, token: str | None) -> Ask[GameInfo]:
        """Register a game in another process."""
        body = {"base_url": base_url, "token": token}
        return Ask("POST", "/nexus/games", lambda data: self._part(GameInfo, data["game"]), body)

    def enter(self, wanted: Mapping[str, Any], key: str | None) -> Ask[Entered]:
        """Enter a game."""
        return Ask("POST", "/nexus/transit/enter", self._entered, encode(wanted), key=key or new_key(), waits=True)

    def leave(self, wanted: Mapping[str, Any], key: str | None) -> Ask[Left]:
        """Leave a game."""
        return Ask("POST", "/nexus/transit/exit", self._left, encode(wanted), key=key or new_key(), waits=True)

    def session(self, session_id: str) -> Ask[SessionRecord]:
        """Look at a session."""
        return Ask("GET", f"/nexus/sessions/{quote(session_id, safe='')}", self._session)

    def avatars(self, session_id: str) -> Ask[list[Avatar]]:
        """Look at an agent's bodies."""
        read = lambda data: [self._part(Avatar, body) for body in data["avatars"]]  # noqa: E731
        return Ask("GET", f"/nexus/sessions/{quote(session_id, safe='')}/avatars", read)

    def view(self, session_id: str) -> Ask[View | None]:
        """Look at what can be drawn."""
        read = lambda data: None if data["view"] is None else self._part(View, data["view"])  # noqa: E731
        return Ask("GET", f"/nexus/sessions/{quote(session_id, safe='')}/view", read)

    # --- reading ----------------------------------------------------------------------------------

    def _part(self, kind: type[T], data: Any) -> T:
        return self._codec.decode(kind, data, where="nexus' answer")

    def _maybe(self, kind: type[T], data: Any) -> T | None:
        return None if data is None else self._part(kind, data)

    def _session(self, data: Any) -> SessionRecord:
        return self._part(SessionRecord, data)

    def _registered(self, data: Any) -> Registration:
        return Registration(self._part(AgentIdentity, data["agent"]), data.get("token"))

    def _whole(self, data: Any) -> Whole:
        lists: Sequence[str] = ("items", "avatars", "achievements")
        kept = {name: tuple(data.get(name, ())) for name in lists}
        sessions = tuple(self._session(s) for s in data["sessions"])
        return Whole(self._part(AgentIdentity, data["agent"]), data.get("skills", {}), sessions=sessions, **kept)

    def _seen(self, data: Any) -> Seen:
        return Seen(data["place"], data["session_id"], self._part(Observation, data["observation"]))

    def _entered(self, data: Any) -> Entered:
        return Entered(
            self._session(data["session"]),
            str(data["bridge_url"]),
            self._maybe(Avatar, data["avatar"]),
            self._maybe(Receipt, data["receipt"]),
            self._maybe(Observation, data["observation"]),
        )

    def _left(self, data: Any) -> Left:
        onward = data["onward_error"]
        return Left(
            self._session(data["session"]),
            self._part(TransitPackage, data["package"]),
            self._maybe(Observation, data["observation"]),
            None if data["entered"] is None else self._entered(data["entered"]),
            None if onward is None else RefusedError(onward["message"], onward["code"], 409, retry=onward["retry"]),
        )


def new_key() -> str:
    """Return an idempotency key that nobody has used."""
    return secrets.token_urlsafe(16)


def _older(before: int | None) -> dict[str, int]:
    return {"limit": 200} if before is None else {"limit": 200, "before": before}


def terms_of(agent_id: str, game: str, goals: Sequence[str], **others: Any) -> dict[str, Any]:
    """Return the body of a request to enter a game."""
    return {"agent_id": agent_id, "game": game, "goals": list(goals), **others}


def way_out_of(agent_id: str, mode: str, force: bool, destination: str | None) -> dict[str, Any]:
    """Return the body of a request to leave one."""
    onward = None if destination is None else {"agent_id": agent_id, "game": destination}
    return {"agent_id": agent_id, "mode": mode, "force": force, "destination": onward}


def listening_to(agent: str | None, kinds: Sequence[str], after: int | None) -> dict[str, Any]:
    """Return the query of a stream of events."""
    params: dict[str, Any] = {}
    if after is not None:
        params["after"] = after
    if agent is not None:
        params["agent"] = agent
    if kinds:
        params["kind"] = list(kinds)
    return params


STREAM: Ask[None] = Ask("GET", "/nexus/events", None)
"""The request for events."""
