"""The asynchronous client."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx2

from wsap_core.errors import WireError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Avatar, Observation, TransitPackage, View
from wsap_core.protocol.wire import Codec, dumps, encode
from wsap_nexus.client import parts
from wsap_nexus.client.parts import Entered, Event, Left, RefusedError, Registration, Seen, Whole
from wsap_nexus.http.retries import Retries, Tries
from wsap_nexus.hub.agents.place import NexusObservation
from wsap_nexus.store.entities import AgentIdentity, Answered, DiaryEntry, Exchange, SessionRecord
from wsap_nexus.worlds.game_info import GameInfo

# Any, in this module: JSON.

T = TypeVar("T")

WAIT = 20.0
"""Seconds that the nexus may wait before it responds with 202."""


class AsyncNexusClient:
    """An asynchronous client of a nexus. Failed requests are retried if that is safe; no action is executed twice.

    Args:
        base_url: such as `http://127.0.0.1:9998`.
        token: the owner's or an agent's; None for public data only.
        wire_types: games' subclasses of messages, to decode as such.
        retries: how often failed requests are retried.
        within: maximum seconds for one request with its retries; None for no limit.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        wire_types: Iterable[type] = (),
        retries: Retries | None = None,
        within: float | None = None,
    ) -> None:
        headers = {"Accept": "application/json", **({} if token is None else {"Authorization": f"Bearer {token}"})}
        timeout = httpx2.Timeout(WAIT + 15, connect=5)
        self._http = httpx2.AsyncClient(base_url=base_url.rstrip("/"), headers=headers, timeout=timeout)
        self._codec = Codec([NexusObservation, *wire_types])
        self._retries = retries or Retries()
        self._within = within

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def register(
        self,
        agent_id: str,
        *,
        name: str = "",
        persona: str = "",
        policies: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Registration:
        """Register an agent, or return the existing one; without policies, it is decided for over HTTP."""
        body: dict[str, Any] = {"id": agent_id, "name": name, "persona": persona}
        if policies is not None:
            body["policies"] = encode(policies)
        return await self._do("POST", "/nexus/agents", self._one(Registration), body)

    def agents(self) -> AsyncGenerator[AgentIdentity, None]:
        """Yield all agents, by id."""
        return self._pages("/nexus/agents", self._many(AgentIdentity, "agents"), "after", first="")

    async def agent(self, agent_id: str) -> Whole:
        """Return all data of an agent."""
        return await self._do("GET", _of_agent(agent_id), self._one(Whole))

    async def change(self, /, agent_id: str, **values: Any) -> AgentIdentity:
        """Change an agent's `name`, `persona`, `policies` or `team`."""
        return await self._do("PATCH", _of_agent(agent_id), self._one(AgentIdentity, "agent"), encode(values))

    async def observation(self, agent_id: str) -> Seen:
        """Return the observation of an agent's next decision, and wait for that."""
        return await self._do("GET", _of_agent(agent_id, "/observation"), self._one(Seen), waits=True)

    async def action_space(self, agent_id: str) -> ActionSpace:
        """Return the action space of an agent's world, or of the nexus."""
        read = self._one(ActionSpace, "action_space")
        return await self._do("GET", _of_agent(agent_id, "/action-space"), read, waits=True)

    async def description(self, agent_id: str) -> str:
        """Return the description of an agent's world, or of the nexus."""
        read = lambda data: str(data["description"])  # noqa: E731
        return await self._do("GET", _of_agent(agent_id, "/description"), read, waits=True)

    async def act(self, agent_id: str, action: Action, *, key: str | None = None) -> ActionResult:
        """Act for an agent and return the result; with your own key, at most once even after a restart."""
        path, read = _of_agent(agent_id, "/act"), self._one(ActionResult, "result")
        return await self._do("POST", path, read, encode(action), key=key or _new_key(), waits=True)

    async def send(self, agent_id: str, content: str, *, to: str | None = None) -> list[str]:
        """Send a message to another agent, or to all in the nexus, and return the recipients."""
        body = {"content": content, "kind": "broadcast" if to is None else "direct", "to": to}
        path = _of_agent(agent_id, "/messages")
        return await self._do("POST", path, lambda data: list(data["recipients"]), body)

    async def talk(self, agent_id: str, text: str, *, key: str | None = None) -> Answered:
        """Talk to an agent and return its answer; needs the owner's token."""
        read = lambda data: Answered(str(data["text"]), data["how"])  # noqa: E731
        path = _of_agent(agent_id, "/talk")
        return await self._do("POST", path, read, {"text": text}, key=key or _new_key(), waits=True)

    def talked(self, agent_id: str) -> AsyncGenerator[Exchange, None]:
        """Yield what people said to an agent, with its answers, newest first."""
        names = ("number", "time", "said", "reply", "how")
        read = lambda data: [Exchange(**{name: each[name] for name in names}) for each in data["exchanges"]]  # noqa: E731
        return self._pages(_of_agent(agent_id, "/talk"), read, "before")

    def diary(self, agent_id: str) -> AsyncGenerator[DiaryEntry, None]:
        """Yield an agent's diary entries about its sessions in worlds, newest first."""
        return self._pages(_of_agent(agent_id, "/diary"), self._many(DiaryEntry, "entries"), "before")

    async def games(self) -> list[GameInfo]:
        """Return the games that can be entered."""
        return await self._do("GET", "/nexus/games", self._many(GameInfo, "games"))

    async def add_game(self, base_url: str, token: str | None = None) -> GameInfo:
        """Register a game in another process."""
        body = {"base_url": base_url, "token": token}
        return await self._do("POST", "/nexus/games", self._one(GameInfo, "game"), body)

    async def enter(
        self,
        agent_id: str,
        game: str,
        *,
        goals: Sequence[str] = (),
        exit_when: str = "",
        steps: int | None = None,
        avatar: str | None = None,
        spawn: str = "safe",
        loadout: str = "default",
        difficulty: str = "normal",
        respawn: str | None = None,
        world: str | None = None,
        seat: str | None = None,
        key: str | None = None,
    ) -> Entered:
        """Send an agent into a game and return its session and first observation.

        Args:
            agent_id: the agent.
            game: the game's name.
            goals: its goals in words.
            exit_when: an exit condition, such as `health < 30%`.
            steps: maximum number of decisions.
            avatar: id of its avatar; `new` for a new one; None for its dormant one.
            spawn: "safe", "challenging" or "random", of a new avatar; a game refuses what its `terms` do not list.
            loadout: what a new avatar carries.
            difficulty: "easy", "normal", "hard" or "adaptive".
            respawn: id of a respawn option, for a dead avatar.
            world: name of one of the game's worlds that live.
            seat: name of a character, in a world with characters.
            key: an idempotency key; None to generate one.
        """
        body = {
            "agent_id": agent_id,
            "game": game,
            "goals": list(goals),
            "exit_when": exit_when,
            "steps": steps,
            "avatar": avatar,
            "spawn": spawn,
            "loadout": loadout,
            "difficulty": difficulty,
            "respawn": respawn,
            "world": world,
            "seat": seat,
        }
        path = "/nexus/transit/enter"
        return await self._do("POST", path, self._one(Entered), encode(body), key=key or _new_key(), waits=True)

    async def leave(
        self,
        agent_id: str,
        *,
        mode: str = "dormant",
        force: bool = False,
        destination: str | None = None,
        key: str | None = None,
    ) -> Left:
        """Bring an agent back, or directly to another game, and return the exported items and the next observation."""
        onward = None if destination is None else {"agent_id": agent_id, "game": destination}
        body = {"agent_id": agent_id, "mode": mode, "force": force, "destination": onward}
        path = "/nexus/transit/exit"
        return await self._do("POST", path, self._left, encode(body), key=key or _new_key(), waits=True)

    async def session(self, session_id: str) -> SessionRecord:
        """Return a session."""
        return await self._do("GET", _of_session(session_id), self._one(SessionRecord))

    async def avatars(self, session_id: str) -> list[Avatar]:
        """Return an agent's avatars in the world of a session."""
        return await self._do("GET", _of_session(session_id, "/avatars"), self._many(Avatar, "avatars"))

    async def view(self, session_id: str) -> View | None:
        """Return the view of a session; None if there is none."""
        read = lambda data: self._maybe(View, data["view"])  # noqa: E731
        return await self._do("GET", _of_session(session_id, "/view"), read)

    # --- watching ---------------------------------------------------------------------------------

    async def stage(self) -> Mapping[str, Any]:
        """Return the world on stage and why, the worlds that can be, and the latest moments: a `StageAnswer`."""
        return await self._do("GET", "/nexus/stage", _whole)

    async def overview(self) -> Mapping[str, Any]:
        """Return numbers, occupied worlds, agents at home, recent events, and what needs attention: `Overview` in the
        reference of the wire API, as are the forms named below."""
        return await self._do("GET", "/nexus/overview", _whole)

    def worlds(self) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield all worlds, newest first, each a `WorldRow`."""
        return self._pages("/nexus/worlds", lambda data: data["worlds"], "before")

    async def world(self, world_id: str) -> Mapping[str, Any]:
        """Return a world, and who is and was in it: a `WorldAnswer`."""
        return await self._do("GET", _of_world(world_id), _whole)

    async def world_view(self, world_id: str) -> View | None:
        """Return the current view of a world for spectators; None if there is none."""
        read = lambda data: self._maybe(View, data["view"])  # noqa: E731
        return await self._do("GET", _of_world(world_id, "/view"), read)

    def runs(self, game: str | None = None) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield the runs of a game or of all, newest first, each a `RunRow`."""
        more = {} if game is None else {"game": game}
        return self._pages("/nexus/runs", lambda data: data["runs"], "before", more=more)

    async def run(self, run_id: str) -> Mapping[str, Any]:
        """Return a run: a `RunAnswer`."""
        return await self._do("GET", _of_run(run_id), _whole)

    async def steps(self, run_id: str, *, position: int = 0, limit: int = 60) -> list[Mapping[str, Any]]:
        """Return steps of a run from a position, from 0, each a `StepRow`; needs the owner's token."""
        read = lambda data: list(data["steps"])  # noqa: E731
        asked = {"position": position, "limit": limit}
        return await self._do("GET", _of_run(run_id, "/steps"), read, params=asked)

    async def step(self, run_id: str, seq: int) -> Mapping[str, Any]:
        """Return one decision, by the `seq` of its step: a `StepAnswer`; needs the owner's token."""
        return await self._do("GET", _of_run(run_id, f"/steps/{seq}"), _whole)

    async def prompt(self, run_id: str, seq: int) -> list[tuple[str, str]]:
        """Return the whole prompt of a model call, by its `seq`, as (role, text); needs the owner's token."""
        read = lambda data: [(each["role"], each["text"]) for each in data["messages"]]  # noqa: E731
        return await self._do("GET", _of_run(run_id, f"/calls/{seq}"), read)

    def sessions(self, agent_id: str) -> AsyncGenerator[SessionRecord, None]:
        """Yield an agent's sessions, newest first."""
        return self._pages(_of_agent(agent_id, "/sessions"), self._many(SessionRecord, "sessions"), "before")

    async def memories(self, agent_id: str) -> Mapping[str, Any]:
        """Return what an agent remembers: a `Memories`; needs its token."""
        return await self._do("GET", _of_agent(agent_id, "/memories"), _whole)

    async def now(self, agent_id: str) -> Mapping[str, Any]:
        """Return what an agent saw and planned last: a `Now`; needs its token."""
        return await self._do("GET", _of_agent(agent_id, "/now"), _whole)

    async def recall(self, agent_id: str) -> None:
        """Bring an agent back into the nexus after its current decision; needs the owner's token."""
        await self._do("POST", _of_agent(agent_id, "/recall"), _whole)

    async def log(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        agent: str | None = None,
        kinds: Sequence[str] = (),
        limit: int = 100,
    ) -> list[Event]:
        """Return past events with their sentences, newest first: the last before one, or the first after one."""
        asked = {"before": before, "after": after, "agent": agent, "kind": list(kinds), "limit": limit}
        params = {name: value for name, value in asked.items() if value not in (None, [])}
        read = lambda data: [parts.event_of(each) for each in data["events"]]  # noqa: E731
        return await self._do("GET", "/nexus/log", read, params=params)

    async def events(
        self,
        *,
        after: int | None = None,
        agent: str | None = None,
        kinds: Sequence[str] = (),
        also: Sequence[str] = (),
        sentences: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Yield new events, or all after a number, without end; a broken stream is resumed.

        Args:
            agent: only events of this agent.
            kinds: only events of these kinds.
            also: `thinking`, what models are asked and write, and `pulse`, who decides in worlds; they have no number.
            sentences: whether events come with their sentences.
        """
        broken = Tries(self._retries, repeatable=True)
        asked: dict[str, Any] = {"agent": agent, "kind": list(kinds), "also": list(also), "after": after}
        asked |= {"sentences": "true" if sentences else None}
        params = {name: value for name, value in asked.items() if value not in (None, [])}
        while True:
            try:
                async with self._http.stream("GET", "/nexus/events", params=params) as response:
                    if response.status_code != 200:
                        await response.aread()
                        raise parts.refusal(response.status_code, response.json())
                    async for part in httpx2.EventSource(response):
                        broken = Tries(self._retries, repeatable=True)
                        if part.id.isdecimal():
                            params["after"] = int(part.id)
                        event = parts.read_event(part.data)
                        if event is not None:
                            yield event
            except httpx2.TransportError as error:
                await asyncio.sleep(_wait_after(broken, error))

    # --- requests ---------------------------------------------------------------------------------

    async def _pages(
        self,
        path: str,
        read: Callable[[Any], list[T]],
        cursor: str,
        first: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[T, None]:
        # `cursor` is the parameter for the start of a page, `more` those of every page.
        place: Any = first
        while True:
            params = {"limit": 200, **(more or {}), **({} if place is None else {cursor: place})}
            page, place = await self._do("GET", path, lambda data: (read(data), data.get("next")), params=params)
            for each in page:
                yield each
            if place is None:
                return

    async def _do(
        self,
        method: str,
        path: str,
        read: Callable[[Any], T],
        body: Any = None,
        *,
        key: str | None = None,
        waits: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> T:
        """Return the response of a request, which is retried if that may help and is safe.

        Args:
            key: the idempotency key, with which retries are always safe.
            waits: whether the response may be 202, and the request is then repeated.

        Raises:
            RefusedError: the nexus refused.
            StillPendingError: it did not complete in time.
            NoAnswerError: there is no response, or not one of a nexus.
        """
        tries = Tries(self._retries, repeatable=key is not None or method in ("GET", "PUT", "DELETE", "PATCH"))
        until = None if self._within is None else time.monotonic() + self._within
        request: dict[str, Any] = {"params": {**(params or {}), **({"wait": WAIT} if waits else {})}}
        headers = {} if key is None else {"Idempotency-Key": key}
        if body is not None:
            headers["Content-Type"] = "application/json"
            request["content"] = dumps(body)
        while True:
            try:
                response = await self._http.request(method, path, headers=headers, **request)
            except httpx2.TransportError as error:
                await asyncio.sleep(_wait_after(tries, error))
                continue
            data = _json(response)
            if response.status_code == 202:
                if until is not None and time.monotonic() >= until:
                    raise parts.StillPendingError(str(data.get("message") or "The request has not completed yet."))
            elif response.status_code < 400:
                try:
                    return read(data)
                except (KeyError, TypeError, AttributeError, WireError) as error:
                    raise parts.NoAnswerError(f"The nexus' response to {path} can't be decoded: {error}") from error
            else:
                refused = parts.refusal(response.status_code, data)
                wait = tries.refused(retryable=refused.retry, after=response.headers.get("retry-after", ""))
                if wait is None:
                    raise refused
                await asyncio.sleep(wait)

    # --- responses --------------------------------------------------------------------------------

    def _part(self, kind: type[T], data: Any) -> T:
        return self._codec.decode(kind, data, where="nexus' answer")

    def _maybe(self, kind: type[T], data: Any) -> T | None:
        return None if data is None else self._part(kind, data)

    def _one(self, kind: type[T], name: str = "") -> Callable[[Any], T]:
        return lambda data: self._part(kind, data[name] if name else data)

    def _many(self, kind: type[T], name: str) -> Callable[[Any], list[T]]:
        return lambda data: [self._part(kind, each) for each in data[name]]

    def _left(self, data: Any) -> Left:
        onward = data["onward_error"]
        return Left(
            self._part(SessionRecord, data["session"]),
            self._part(TransitPackage, data["package"]),
            self._maybe(Observation, data["observation"]),
            self._maybe(Entered, data["entered"]),
            None if onward is None else RefusedError(onward["message"], onward["code"], 409, retry=onward["retry"]),
        )


def _of_agent(agent_id: str, part: str = "") -> str:
    return f"/nexus/agents/{quote(agent_id, safe='')}{part}"


def _of_session(session_id: str, part: str = "") -> str:
    return f"/nexus/sessions/{quote(session_id, safe='')}{part}"


def _of_world(world_id: str, part: str = "") -> str:
    return f"/nexus/worlds/{quote(world_id, safe='')}{part}"


def _of_run(run_id: str, part: str = "") -> str:
    return f"/nexus/runs/{quote(run_id, safe='')}{part}"


def _whole(data: dict[str, Any]) -> dict[str, Any]:
    return data


def _new_key() -> str:
    return secrets.token_urlsafe(16)


def _wait_after(tries: Tries, error: httpx2.TransportError) -> float:
    """Return the seconds to wait before a retry without a response; NoAnswerError if it must not be retried."""
    wait = tries.unanswered(error)
    if wait is None:
        raise parts.NoAnswerError(f"The nexus does not respond: {str(error) or type(error).__name__}") from error
    return wait


def _json(response: httpx2.Response) -> dict[str, Any]:
    try:
        data = json.loads(response.content)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise parts.NoAnswerError(f"The server at {response.url} is not a nexus (status {response.status_code}).")
    return data
