"""The players as agents of the protocol, which know only their observations."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.seams.context import Context
from wsap_tossim.knowledge import Knowledge, Seen
from wsap_tossim.perception.observation import TownObservation
from wsap_tossim.players.decider import Decider, RandomDecider, Turn, lots
from wsap_tossim.players.scripted import ScriptedDecider
from wsap_tossim.verbs import to_action

__all__ = ["TownPlayer", "create", "create_random"]

WAIT = Action("wait")
_Maker = Callable[[int, random.Random, Sequence[str]], Decider]


class TownPlayer:
    """A decider, returned by `maker` for a seat, as an agent of the protocol.

    Its state is its seed, the events that it was told, and the rest of its turn.
    """

    def __init__(self, seed: int, maker: _Maker = ScriptedDecider) -> None:
        self._seed = seed
        self._maker = maker
        self._forget()

    def _forget(self) -> None:
        self._knowledge: Knowledge | None = None
        self._decider: Decider | None = None
        self._names: tuple[str, ...] = ()
        self._planned: list[Action] = []
        """Remaining actions of this turn: papers, then the choice."""
        self._planned_at = -1
        self._over = False

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Ignore the game's description, since observations contain everything needed."""
        if self._over:
            self._forget()

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return its fixed plan."""
        return ["listen to what all claim", "hold it against deaths and wills", "vote, and write a will"]

    def reflect(self, result: ActionResult) -> None:
        """Reset at the end of a game."""
        self._over = self._over or result.done

    def decide(self, observation: Observation) -> Action:
        """Return the next action of its turn: a paper to write, or its choice."""
        if not isinstance(observation, TownObservation):
            return WAIT
        knowledge = self._told(observation)
        if knowledge is None or not observation.options:
            return WAIT
        if not self._planned or self._planned_at != observation.step:
            decider = self._decider
            assert decider is not None, "a decider is made with the knowledge"
            turn = decider.turn(knowledge, observation.possible())
            self._planned = _steps(turn, knowledge, observation)
            self._planned_at = observation.step
        return self._planned.pop(0)

    def _told(self, observation: TownObservation) -> Knowledge | None:
        """Add the news, and return the knowledge; None if the agent joined in the middle of a game."""
        first = observation.first_news
        news = observation.seen()
        begins = first == 0 and bool(news) and news[0].kind == "begins"
        knowledge = self._knowledge
        if begins and (self._over or (knowledge is not None and len(news) < len(knowledge.events))):
            self._forget()
            knowledge = None
        if knowledge is None:
            if not begins:
                return None
            knowledge = self._know(observation.player, observation.names)
        if first > len(knowledge.events):
            return None
        knowledge.take_all(news[len(knowledge.events) - first :])
        return knowledge

    def _know(self, player: int, names: Sequence[str]) -> Knowledge:
        self._names = tuple(names)
        self._knowledge = Knowledge(player)
        self._decider = self._maker(player, lots(self._seed, player), self._names)
        return self._knowledge

    # --- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the seed, the events told, and the rest of this turn."""
        knowledge = self._knowledge
        state = {
            "format": 1,
            "seed": self._seed,
            "over": self._over,
            "player": None if knowledge is None else knowledge.player,
            "names": list(self._names),
            "events": [] if knowledge is None else [[e.day, e.phase, e.kind, dict(e.data)] for e in knowledge.events],
            "planned": [[a.name, dict(a.parameters), a.reasoning] for a in self._planned],
            "planned_at": self._planned_at,
        }
        return json.dumps(state, ensure_ascii=False, default=dict).encode()  # events have read-only mappings

    def restore(self, data: bytes) -> None:
        """Restore a snapshot.

        Raises:
            SnapshotError: the data is damaged or of another version; the agent is unchanged.
        """
        other = TownPlayer(0, self._maker)
        try:
            state = json.loads(data)
            if state["format"] != 1:
                raise SnapshotError(f"The player's snapshot has the format {state['format']!r}; this package reads 1.")
            other._seed = int(state["seed"])
            if state["player"] is not None:
                knowledge = other._know(int(state["player"]), [str(name) for name in state["names"]])
                knowledge.take_all(Seen(int(d), str(p), str(k), dict(data)) for d, p, k, data in state["events"])
            other._planned = [
                Action(str(name), dict(given), None if why is None else str(why))
                for name, given, why in state["planned"]
            ]
            other._planned_at = int(state["planned_at"])
            other._over = bool(state["over"])
        except SnapshotError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise SnapshotError(f"The player's snapshot is damaged: {error}.") from error
        self.__dict__.update(other.__dict__)


def create(context: Context) -> TownPlayer:
    """Return a scripted player."""
    return TownPlayer(context.seed)


def create_random(context: Context) -> TownPlayer:
    """Return a random player."""
    return TownPlayer(context.seed, RandomDecider)


def _steps(turn: Turn, knowledge: Knowledge, observation: TownObservation) -> list[Action]:
    """Return a turn as actions: papers by available tools, then the choice."""
    tools = {a.name for a in observation.available_actions or () if a.available}
    steps: list[Action] = []
    for what, tool in (("notebook", "notebook"), ("will", "write_will"), ("note", "write_death_note")):
        text = turn.writings.get(what)
        if text is None or tool not in tools:
            continue
        if what == "notebook":  # the tool adds a line
            text = text.removeprefix(knowledge.notebook).strip("\n")
        if text.strip():
            steps.append(Action(tool, {"text": text}))
    return [*steps, to_action(turn.choice, observation.names, turn.thought or None)]
