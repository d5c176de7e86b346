"""The client whose methods are called."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from wsap_core.protocol import Action, ActionResult, ActionSpace, Avatar, View
from wsap_nexus.client.asks import STREAM, Asks, listening_to, terms_of, way_out_of
from wsap_nexus.client.parts import (
    Answered,
    Ask,
    DiaryEntry,
    Entered,
    Event,
    Exchange,
    Left,
    Registration,
    Seen,
    Whole,
)
from wsap_nexus.client.transport import PENDING, Answer, Attempt, options, put, read_event, refusal
from wsap_nexus.http.retries import Retries
from wsap_nexus.store.entities import AgentIdentity, SessionRecord
from wsap_nexus.worlds.game_info import GameInfo

# Any, in this module: JSON.

T = TypeVar("T")


class NexusClient:
    """A nexus over HTTP. What fails and may be tried again is; nothing is done twice.

    Args:
        base_url: where it is: `http://127.0.0.1:9998`.
        token: of whoever runs it, or of an agent; None to look at what is open.
        wire_types: classes of games' own messages, so that they are not read as their bases.
        retries: how often it is tried.
        within: seconds that one request may take altogether; None for as long as it takes.
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
        self._http = httpx2.Client(**options(base_url, token))
        self._asks = Asks(wire_types)
        self._retries = retries or Retries()
        self._within = within

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def register(
        self,
        agent_id: str,
        *,
        name: str = "",
        persona: str = "",
        policies: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Registration:
        """Register an agent, or get the one of that id; decided for over the wire if no policies are given."""
        return self._do(self._asks.register(agent_id, name, persona, policies))

    def agents(self) -> Iterator[AgentIdentity]:
        """Give all agents, by id."""
        after: str | None = ""
        while after is not None:
            page, after = self._do(self._asks.agents(after, 200))
            yield from page

    def agent(self, agent_id: str) -> Whole:
        """Return everything that is kept of an agent."""
        return self._do(self._asks.agent(agent_id))

    def change(self, agent_id: str, **values: Any) -> AgentIdentity:
        """Change an agent's `name`, `persona` or `policies`."""
        return self._do(self._asks.change(agent_id, values))

    def observation(self, agent_id: str) -> Seen:
        """Return what an agent sees at its next decision; waits for it."""
        return self._do(self._asks.observation(agent_id))

    def action_space(self, agent_id: str) -> ActionSpace:
        """Return what can be done where an agent is."""
        return self._do(self._asks.action_space(agent_id))

    def description(self, agent_id: str) -> str:
        """Return what an agent is told of where it is."""
        return self._do(self._asks.description(agent_id))

    def act(self, agent_id: str, action: Action, *, key: str | None = None) -> ActionResult:
        """Act for an agent and return what came of it; with a key of one's own, once even across restarts."""
        return self._do(self._asks.act(agent_id, action, key))

    def send(self, agent_id: str, content: str, *, to: str | None = None) -> list[str]:
        """Send a message to another agent, or to all in the nexus; return who gets it."""
        return self._do(self._asks.send(agent_id, content, to))

    def talk(self, agent_id: str, text: str, *, key: str | None = None) -> Answered:
        """Say something to an agent, and return what it answers; for whoever runs the nexus."""
        return self._do(self._asks.talk(agent_id, text, key))

    def talked(self, agent_id: str) -> Iterator[Exchange]:
        """Give what people said to an agent and what it answered, newest first."""
        before: int | None = None
        while True:
            page, before = self._do(self._asks.talked(agent_id, before))
            yield from page
            if before is None:
                return

    def diary(self, agent_id: str) -> Iterator[DiaryEntry]:
        """Give what an agent wrote about its stays in worlds, newest first."""
        before: int | None = None
        while True:
            page, before = self._do(self._asks.diary(agent_id, before))
            yield from page
            if before is None:
                return

    def games(self) -> list[GameInfo]:
        """Return the games that can be entered."""
        return self._do(self._asks.games())

    def add_game(self, base_url: str, token: str | None = None) -> GameInfo:
        """Register a game in another process."""
        return self._do(self._asks.add_game(base_url, token))

    def enter(
        self,
        agent_id: str,
        game: str,
        *,
        goals: Sequence[str] = (),
        exit_when: str = "",
        steps: int | None = None,
        avatar: str | None = None,
        spawn: str = "safe",
        difficulty: str = "normal",
        respawn: str | None = None,
        key: str | None = None,
    ) -> Entered:
        """Send an agent into a game and return its session and first observation.

        Args:
            agent_id: who goes.
            game: where to.
            goals: what it wants there, in words.
            exit_when: an exit condition, such as `health < 30%`.
            steps: most decisions.
            avatar: which of its bodies; `new` for a new one; None for the one that sleeps.
            spawn: "safe", "challenging" or "random".
            difficulty: "easy", "normal", "hard" or "adaptive".
            respawn: the way back to life, by its id, for a body that is dead.
            key: an idempotency key; one is made when None.
        """
        terms = terms_of(
            agent_id, game, goals, exit_when=exit_when, steps=steps, avatar=avatar, spawn=spawn,
            difficulty=difficulty, respawn=respawn,
        )  # fmt: skip
        return self._do(self._asks.enter(terms, key))

    def leave(
        self,
        agent_id: str,
        *,
        mode: str = "dormant",
        force: bool = False,
        destination: str | None = None,
        key: str | None = None,
    ) -> Left:
        """Bring an agent back, or straight on to another game, and return what it carries."""
        return self._do(self._asks.leave(way_out_of(agent_id, mode, force, destination), key))

    def session(self, session_id: str) -> SessionRecord:
        """Return a session."""
        return self._do(self._asks.session(session_id))

    def avatars(self, session_id: str) -> list[Avatar]:
        """Return an agent's bodies in the world of a session."""
        return self._do(self._asks.avatars(session_id))

    def view(self, session_id: str) -> View | None:
        """Return what can be drawn of a session."""
        return self._do(self._asks.view(session_id))

    def events(
        self, *, after: int | None = None, agent: str | None = None, kinds: Sequence[str] = ()
    ) -> Iterator[Event]:
        """Give what happens, for ever: from now on, or from after an event on; goes on where a stream breaks."""
        broken = Attempt(STREAM, self._retries, None)
        while True:
            try:
                with self._http.stream("GET", "/nexus/events", params=listening_to(agent, kinds, after)) as response:
                    if response.status_code != 200:
                        response.read()
                        raise refusal(response.status_code, response.json())
                    for part in httpx2.EventSource(response):
                        broken = Attempt(STREAM, self._retries, None)
                        if part.id.isdigit():
                            after = int(part.id)
                        event = read_event(part.data)
                        if event is not None:
                            yield event
            except httpx2.TransportError as error:
                time.sleep(broken.failed(error))

    def _do(self, ask: Ask[T]) -> T:
        attempt = Attempt(ask, self._retries, self._within)
        while True:
            try:
                told = attempt.answered(self._http.request(**put(ask)))
            except httpx2.TransportError as error:
                told = attempt.failed(error)
            if isinstance(told, Answer):
                value: T = told.value
                return value
            if told is not PENDING:
                time.sleep(told)
