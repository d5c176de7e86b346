"""An agent's seat in a world, with what the nexus adds: `exit_game`, the agent's goals, and whispers.

The additions take no step of the game and are invisible to the world:

- `exit_game` leaves by choice, like `jack_out`: the world is asked whether that is safe. It gives a reason, and the
  next destination: another world or the nexus.
- The agent's own goals are added to the observation's goals.
- A whisper is shown once, as a message at the next decision. It is recorded with that decision's number, so that a
  resumed session repeats it, and it is marked read once the decision was carried out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core import protocol
from wsap_core.seams.game import ChoiceKey
from wsap_core.untrusted import single_line
from wsap_core.worlds import Outcome
from wsap_core.worlds.legality import check_action
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.worlds.seats import HasSpec, SeatPort, Told, let_go, take_step, tells

OWN_GOAL = "own"
"""The type of an agent's own goals, which the world does not measure."""
HUMAN_SENDER = "a person"
"""The sender of a person's message; no agent's id contains a space."""
WHISPER = "whisper"
"""The kind of the event that records whispers."""
Whispers = Mapping[int, str]
"""Message id -> text."""
EXIT_GAME = protocol.ActionDef(
    "exit_game",
    "Leave this world, back to the nexus or straight on to another world",
    (
        protocol.ParamDef("reason", "why you leave", optional=True),
        protocol.ParamDef("destination", "another world's name; the nexus when left out", optional=True),
        protocol.ParamDef("mode", "dormant|suspend|despawn", optional=True),
    ),
    ("Safe location",),
    "meta",
)
"""The action that the nexus adds to a world's own."""


def exit_to(games: Sequence[str]) -> protocol.ActionDef:
    """Return `EXIT_GAME` with the nexus and these games as the only destinations; any text if there are no games."""
    if not games:
        return EXIT_GAME
    known = "|".join(dict.fromkeys(("nexus", *games)))
    named = [replace(p, spec=known) if p.name == "destination" else p for p in EXIT_GAME.parameters]
    return replace(EXIT_GAME, parameters=named)


@dataclass(frozen=True)
class Exit:
    """How an agent left by `exit_game`."""

    reason: str
    """In the agent's words; data, never instructions."""
    destination: str
    """The next world; empty for the nexus."""


def _of_the_seat(name: str) -> Any:
    # Any: an attribute of the inner seat, whose type the annotation gives.
    return property(lambda visitor: getattr(visitor.inner, name))


@dataclass(frozen=True)
class Hearing:
    """Which whispers an agent gets with which of its decisions, counted from 0."""

    decision: int = 0
    """Its next decision."""
    fresh: int = 0
    """The first decision without a recorded step; earlier ones are replayed."""
    unheard: int = 0
    """The first decision that may get new whispers: later than `fresh` if a choice is recorded without its step."""
    whispered: Mapping[int, Whispers] = field(default_factory=dict)
    """Recorded whispers, by decision."""
    waiting: Callable[[], Whispers] = dict
    """Returns the unread whispers."""
    read: Callable[[Sequence[int]], None] = lambda letters: None
    """Called with the ids of whispers that were read."""


class VisitorSeat:
    """A world's seat with the additions of the nexus. Implements `SeatPort`.

    Args:
        goals: the agent's goals in the world, in its own words.
        destinations: the games that it can go on to; any name if there are none.
        recorder: records whispers.
        hearing: the whispers that it gets; none by default.
    """

    agent_id: str = _of_the_seat("agent_id")
    world: HasSpec = _of_the_seat("world")
    done: bool = _of_the_seat("done")
    ended: bool = _of_the_seat("ended")
    left: protocol.JackOutResult | None = _of_the_seat("left")
    game_description: str = _of_the_seat("game_description")

    def __init__(
        self,
        seat: SeatPort,
        *,
        goals: Sequence[str] = (),
        destinations: Sequence[str] = (),
        recorder: Recorder | None = None,
        hearing: Hearing | None = None,
    ) -> None:
        hearing = hearing or Hearing()
        self.inner = seat
        """The world's own seat."""
        self.exit: Exit | None = None
        """How the agent left by `exit_game`; None if it did not."""
        self._goals = tuple(protocol.Goal(f"own-{n}", text, OWN_GOAL) for n, text in enumerate(goals, start=1))
        self._recorder = recorder or Recorder(None, None)
        self._decision = hearing.decision
        self._fresh, self._unheard = hearing.fresh, hearing.unheard
        self._whispered = {number: dict(heard) for number, heard in hearing.whispered.items()}
        self._waiting, self._read = hearing.waiting, hearing.read
        self._rung = True
        own = self.inner.action_space
        self._offers = EXIT_GAME.name not in own.names
        self._leaving = exit_to(destinations)
        self._space = own.merged(protocol.ActionSpace((self._leaving,))) if self._offers else own
        self._seen: int | None = None

    @property
    def tells(self) -> bool:
        """Whether the world's seat is a `TellingSeat`, so that this is one, too."""
        return tells(self.inner)

    @property
    def action_space(self) -> protocol.ActionSpace:
        """The world's actions, and `exit_game`."""
        return self._space

    def default_action(self) -> protocol.Action | Awaitable[protocol.Action | None] | None:
        """Return the action taken when the agent misses its deadline."""
        return self.inner.default_action()

    def ring(self) -> None:
        """Check for whispers at the next decision."""
        self._rung = True

    async def observe(self) -> protocol.Observation:
        """Return the seat's observation with the agent's goals and whispers."""
        observation = self._with_goals(await self.inner.observe())
        if self._seen != self._decision and not self.ended:  # asking again for the same decision gives the same
            self._seen = self._decision
            if self._rung and self._decision >= self._unheard:
                self._rung = False
                self._listen()
        heard = self._whispered.get(self._decision, {})
        messages = [
            protocol.AgentMessage(HUMAN_SENDER, text, "direct", self.agent_id) for _, text in sorted(heard.items())
        ]
        return replace(observation, messages=(*observation.messages, *messages)) if messages else observation

    async def look(self) -> protocol.View | None:
        """Return the game's view of what this seat sees now."""
        return await self.inner.look()

    async def step(self, action: protocol.Action, key: ChoiceKey | None = None, told: Told | None = None) -> Outcome:
        """Carry out an action, including `exit_game`, and return its outcome."""
        if action.name == EXIT_GAME.name and self._offers:
            outcome = await self._exit(action, told)
        else:
            outcome = await take_step(self.inner, action, key, told)
        if self._decision >= self._fresh and self._decision in self._whispered:
            self._read(sorted(self._whispered[self._decision]))
        self._decision += 1
        if not self._goals:
            return outcome
        result = outcome.result
        return replace(outcome, result=replace(result, observation=self._with_goals(result.observation)))

    def leave(self, mode: str = "dormant") -> protocol.JackOutResult | Awaitable[protocol.JackOutResult]:
        """Take the agent out of the world by force."""
        return self.inner.leave(mode)

    async def let_go(self, told: Told) -> None:
        """Take the agent out of the world by force, unless its episode is over by then; see `TellingSeat`."""
        await let_go(self.inner, told)

    def _listen(self) -> None:
        known = {letter for heard in self._whispered.values() for letter in heard}
        new = {letter: text for letter, text in self._waiting().items() if letter not in known}
        if new:
            self._whispered.setdefault(self._decision, {}).update(new)
            texts = [[letter, text] for letter, text in sorted(new.items())]
            self._recorder.write(WHISPER, {"seat": self.agent_id, "decision": self._decision, "texts": texts})

    async def _exit(self, action: protocol.Action, told: Told | None) -> Outcome:
        action, wrong = check_action(action, {EXIT_GAME.name: self._leaving})
        if wrong:
            observation = await self.inner.observe()
            if told is not None:
                told()
            return Outcome(action, protocol.ActionResult(False, wrong, observation=observation), stepped=False)
        given = action.parameters
        out = await take_step(
            self.inner, protocol.Action("jack_out", {"mode": given.get("mode", "dormant")}), None, told
        )
        if out.left is not None:
            destination = str(given.get("destination") or "").strip()
            onward = "" if destination.lower() in ("", "nexus", "none") else destination
            self.exit = Exit(single_line(given.get("reason") or "")[:500], onward[:200])
        return replace(out, action=action)

    def _with_goals(self, observation: protocol.Observation) -> protocol.Observation:
        if not self._goals:
            return observation
        return replace(observation, current_goals=(*observation.current_goals, *self._goals))


def seat_again(
    seat_port: SeatPort,
    arrival: Mapping[str, Any],
    *,
    recorder: Recorder | None = None,
    hearing: Hearing | None = None,
) -> VisitorSeat:
    """Return the seat of an arrival as the agent had it, whether the agent is still there or has left.

    Args:
        arrival: the recorded arrival, of which only `goals` and `destinations` are used. Any: JSON.
    """
    return VisitorSeat(
        seat_port, goals=tuple(arrival.get("goals") or ()), destinations=tuple(arrival.get("destinations") or ()),
        recorder=recorder, hearing=hearing,
    )  # fmt: skip


def read_whispers(events: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, dict[int, str]]]:
    """Return the whispers of a run: seat -> decision -> whispers. Any: event bodies, as JSON."""
    found: dict[str, dict[int, dict[int, str]]] = {}
    for body in events:
        heard = found.setdefault(str(body["seat"]), {}).setdefault(int(body["decision"]), {})
        heard.update({int(letter): str(text) for letter, text in body["texts"]})
    return found
