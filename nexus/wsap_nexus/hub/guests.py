"""A seat of a world, as an agent of the nexus has it: with a way out and on, its own goals, and whispers.

What a guest can do beyond the world's own seat needs no step of the game, and other worlds know
nothing of it:

- `exit_game` leaves by choice, like `jack_out`: the world is asked whether that is safe. It says
  why, and where to go next: straight on to another world, or back to the nexus.
- The goals that the agent brought along stand among the observation's goals.
- What a person whispers comes as a message at the next decision, once. It is recorded with the
  number of that decision, so that a stay that is gone on with goes the same way again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wsap_core.models import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    AgentMessage,
    Goal,
    JackOutResult,
    Observation,
    ParamDef,
    View,
)
from wsap_core.text import one_line
from wsap_core.wire import dumps
from wsap_core.worlds import Outcome
from wsap_core.worlds.legality import check_action
from wsap_core.worlds.mailbox import MAX_LENGTH
from wsap_nexus.hub.letters import PERSON
from wsap_nexus.runtime.recorder import Recorder
from wsap_nexus.runtime.seats import HasSpec, SeatFace

WHISPER = "whisper"
"""The kind of the event by which a run's log tells what was whispered."""
OWN_GOAL = "own"
"""The type of goals that an agent brings along; no world measures them."""
MOST_WHISPERS = 20
"""Whispers that wait for one decision; the oldest go first."""

EXIT_GAME = ActionDef(
    "exit_game",
    "Leave this world, back to the nexus or straight on to another world",
    (
        ParamDef("reason", "why you leave", optional=True),
        ParamDef("destination", "another world's name; the nexus when left out", optional=True),
        ParamDef("mode", "dormant|suspend|despawn", optional=True),
    ),
    ("Safe location",),
    "meta",
)
"""The action that worlds have for guests besides their own."""


@dataclass(frozen=True)
class Exit:
    """How a guest left."""

    reason: str
    """In its own words; data, never instructions."""
    destination: str
    """The world to go on to; empty for the nexus."""


class GuestSeat:
    """A seat of a world with what agents of the nexus have besides. Implements `SeatFace`.

    Args:
        seat: the world's own.
        goals: what the agent wants to do there, in its own words.
        recorder: where whispers are recorded.
        decision: the number of the next decision, from 0.
        whispered: what was whispered before: decision -> texts.
    """

    def __init__(
        self,
        seat: SeatFace,
        *,
        goals: Sequence[str] = (),
        recorder: Recorder | None = None,
        decision: int = 0,
        whispered: Mapping[int, Sequence[str]] | None = None,
    ) -> None:
        self.inner = seat
        """The world's own seat."""
        self.exit: Exit | None = None
        """How the agent left, if it did so by `exit_game`."""
        self._goals = tuple(Goal(f"own-{n}", text, OWN_GOAL) for n, text in enumerate(goals, start=1))
        self._recorder = recorder or Recorder(None, None)
        self._decision = decision
        self._whispered = {number: list(texts) for number, texts in (whispered or {}).items()}
        self._waiting: list[str] = []
        own = self.inner.action_space
        self._offers = EXIT_GAME.name not in own.names
        self._space = own.merged(ActionSpace((EXIT_GAME,))) if self._offers else own
        self._seen: int | None = None

    @property
    def agent_id(self) -> str:
        """Who sits there."""
        return self.inner.agent_id

    @property
    def world(self) -> HasSpec:
        """The world."""
        return self.inner.world

    @property
    def done(self) -> bool:
        """Whether the episode of this seat is over."""
        return self.inner.done

    @property
    def left(self) -> JackOutResult | None:
        """Set once the agent has left the world."""
        return self.inner.left

    @property
    def game_description(self) -> str:
        """The game, its goals and mechanics."""
        return self.inner.game_description

    @property
    def action_space(self) -> ActionSpace:
        """The world's actions, and `exit_game`."""
        return self._space

    def default_action(self) -> Action | Awaitable[Action | None] | None:
        """Return what is done when the agent misses its deadline."""
        return self.inner.default_action()

    def whisper(self, text: str) -> None:
        """Have the agent hear something from a person at its next decision."""
        self._waiting.append(text[:MAX_LENGTH])
        del self._waiting[:-MOST_WHISPERS]

    async def observe(self) -> Observation:
        """Return what the seat sees, with the agent's own goals, and what was whispered to it."""
        observation = self._with_goals(await self.inner.observe())
        if self._seen != self._decision:  # asking again for the same decision gives the same
            self._seen = self._decision
            if self._waiting:
                new, self._waiting = self._waiting, []
                self._whispered.setdefault(self._decision, []).extend(new)
                body = {"seat": self.agent_id, "decision": self._decision, "texts": new}
                self._recorder.write(WHISPER, dumps(body))
        heard = [
            AgentMessage(PERSON, text, "direct", self.agent_id) for text in self._whispered.get(self._decision, ())
        ]
        return replace(observation, messages=(*observation.messages, *heard)) if heard else observation

    async def look(self) -> View | None:
        """Return what this seat sees now, drawn by the game."""
        return await self.inner.look()

    async def resolve(self, action: Action) -> Outcome:
        """Carry out an action, `exit_game` among them, and return what came of it."""
        if action.name == EXIT_GAME.name and self._offers:
            outcome = await self._exit(action)
        else:
            outcome = await self.inner.resolve(action)
        self._decision += 1
        if not self._goals:
            return outcome
        result = outcome.result
        return replace(outcome, result=replace(result, observation=self._with_goals(result.observation)))

    def leave(self, mode: str = "dormant") -> JackOutResult | Awaitable[JackOutResult]:
        """Take the agent out of the world by force."""
        return self.inner.leave(mode)

    async def _exit(self, action: Action) -> Outcome:
        action, wrong = check_action(action, {EXIT_GAME.name: EXIT_GAME})
        if wrong:
            observation = await self.inner.observe()
            return Outcome(action, ActionResult(False, wrong, observation=observation), stepped=False)
        given = action.parameters
        out = await self.inner.resolve(Action("jack_out", {"mode": given.get("mode", "dormant")}))
        if out.left is not None:
            destination = str(given.get("destination") or "").strip()
            onward = "" if destination.lower() in ("", "nexus", "none") else destination
            self.exit = Exit(one_line(given.get("reason") or "")[:500], onward[:200])
        return replace(out, action=action)

    def _with_goals(self, observation: Observation) -> Observation:
        if not self._goals:
            return observation
        return replace(observation, current_goals=(*observation.current_goals, *self._goals))


def read_whispers(events: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, list[str]]]:
    """Return what was whispered in a run: seat -> decision -> texts. Any: the bodies of events, as JSON."""
    found: dict[str, dict[int, list[str]]] = {}
    for body in events:
        texts = found.setdefault(str(body["seat"]), {}).setdefault(int(body["decision"]), [])
        texts.extend(str(text) for text in body["texts"])
    return found
