"""Repeated two-player matrix games: a small world of several seats whose outcomes are known exactly.

Payoffs are the textbook ones (Axelrod 1984 for the prisoner's dilemma; Osborne and Rubinstein,
A Course in Game Theory, 1994, for the others).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wsap_core.errors import ConfigError, SnapshotError, UsageError
from wsap_core.protocol import (
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    Event,
    Goal,
    Location,
    Observation,
    TableBlock,
    View,
)
from wsap_core.seams.context import Context
from wsap_core.specs import EpisodeSummary, Timing
from wsap_core.worlds.barrier import Barrier
from wsap_core.worlds.legality import check_action, index_actions
from wsap_core.worlds.mailbox import Mailbox

SEATS = ("row", "column")

Payoffs = Mapping[tuple[str, str], tuple[float, float]]

GAMES: Mapping[str, tuple[tuple[str, ...], Payoffs]] = {
    "prisoners-dilemma": (
        ("cooperate", "defect"),
        {
            ("cooperate", "cooperate"): (3, 3),
            ("cooperate", "defect"): (0, 5),
            ("defect", "cooperate"): (5, 0),
            ("defect", "defect"): (1, 1),
        },
    ),
    "matching-pennies": (
        ("heads", "tails"),
        {
            ("heads", "heads"): (1, -1),
            ("heads", "tails"): (-1, 1),
            ("tails", "heads"): (-1, 1),
            ("tails", "tails"): (1, -1),
        },
    ),
    "rock-paper-scissors": (
        ("rock", "paper", "scissors"),
        {
            (mine, other): ((0, 0) if mine == other else (1, -1) if beats == other else (-1, 1))
            for mine, beats in (("rock", "scissors"), ("paper", "rock"), ("scissors", "paper"))
            for other in ("rock", "paper", "scissors")
        },
    ),
}
"""Name -> (choices, payoff to row and column for each pair of choices)."""


class MatrixGame:
    """Two seats, the same choices each round, payoffs from a matrix.

    Options: `game` (see `GAMES`), `rounds` (10).

    Args:
        timing: `simultaneous`, `alternating` (row first; column sees row's choice) or `free`
            (each choice meets the other's last one; the first choice there is until then).
        game: which matrix.
        rounds: how many payoffs each seat gets in an episode.
    """

    def __init__(self, timing: Timing, game: str, rounds: int) -> None:
        self._timing = timing
        self._title = game
        self._choices, self._payoffs = GAMES[game]
        self._rounds = rounds
        self._space = ActionSpace(tuple(ActionDef(c, f"Choose {c}", (), (), "choice") for c in self._choices))
        self._available = tuple(ActionAvailability(c) for c in self._choices)
        self._over = tuple(ActionAvailability(c, False, "the game is over") for c in self._choices)
        self._taken: dict[str, str] = {}
        self._totals: dict[str, float] = {}
        self._history: list[tuple[str, str]] = []
        self._last: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._open: str | None = None
        self.mailbox = Mailbox(SEATS, immediate=timing != "simultaneous")
        self._barrier = Barrier(
            SEATS,
            self._resolve,
            self.default_action,
            timing="alternating" if timing == "alternating" else "simultaneous",
            observe=self.observation,
        )
        self.reset()

    @property
    def game_description(self) -> str:
        """The rules, with the payoff matrix."""
        order = {
            "simultaneous": "Both choose at the same time.",
            "alternating": "Row chooses first; column then chooses, knowing row's choice.",
            "free": "Both choose whenever they like; each choice meets the other's last one.",
        }[self._timing]
        table = "\n".join(f"row {a}, column {b}: row gets {x}, column {y}" for (a, b), (x, y) in self._payoffs.items())
        return f"{self._title}, {self._rounds} rounds. {order}\n{table}\nCollect as much as you can."

    @property
    def action_space(self) -> ActionSpace:
        """One action for each choice."""
        return self._space

    def observe(self) -> Observation:
        """Refuse: there are several seats.

        Raises:
            UsageError: always; ask a seat.
        """
        raise UsageError("The matrix game has two seats; observe through seat('row') or seat('column').")

    def act(self, action: Action) -> ActionResult:
        """Refuse: there are several seats.

        Raises:
            UsageError: always; ask a seat.
        """
        raise UsageError("The matrix game has two seats; act through seat('row') or seat('column').")

    def reset(self, seed: int | None = None) -> Observation:
        """Begin again; there is no chance in this world. Return what row sees."""
        self._totals = dict.fromkeys(SEATS, 0.0)
        self._history = []
        self._last = {}
        self._counts = dict.fromkeys(SEATS, 0)
        self._open = None
        self._barrier.restart()
        self.mailbox.clear()
        return self.observation("row")

    def seat(self, agent_id: str) -> MatrixSeat:
        """Return the face of the game for one player; unknown names take the first free seat.

        Raises:
            UsageError: both seats are taken by others.
        """
        place = agent_id if agent_id in SEATS else self._taken.get(agent_id)
        if place is None:
            place = next((s for s in SEATS if s not in self._taken.values()), None)
        if place is None:
            raise UsageError("Both seats of the matrix game are taken.")
        self._taken[agent_id] = place
        return MatrixSeat(self, place)

    def default_action(self, seat: str) -> Action:
        """Return the first choice: what is done for a seat that misses its deadline."""
        return Action(self._choices[0])

    def done(self, seat: str) -> bool:
        """Return whether the episode is over for a seat."""
        if self._timing == "free":
            return self._played(seat) >= self._rounds
        return len(self._history) >= self._rounds

    def observation(self, seat: str) -> Observation:
        """Return what one seat perceives: all finished rounds, and in turns the open choice it answers."""
        other = SEATS[1 - SEATS.index(seat)]
        status: dict[str, Any] = {
            "round": min(self._played(seat) + 1, self._rounds),
            "rounds": self._rounds,
            "your total": self._totals[seat],
            "other's total": self._totals[other],
        }
        events: list[Event] = []
        if other in self._last:
            status["other's last choice"] = self._last[other]
        if seat in self._last:
            status["your last choice"] = self._last[seat]
        if self._history:
            mine = SEATS.index(seat)
            pair = self._history[-1]
            events.append(Event(f"You chose {pair[mine]}, the other {pair[1 - mine]}.", "round", other))
        if self._open is not None and seat == "column":
            status["row's choice"] = self._open
            status["other's last choice"] = self._open
            events.append(Event(f"Row has chosen {self._open}.", "choice", "row"))
        return Observation(
            status=status,
            location=Location((), seat, f"At the table, as {seat}"),
            current_goals=(Goal("collect", "Collect as much as you can", "main", f"{self._totals[seat]:g} so far"),),
            recent_events=events,
            step=self._played(seat),
            available_actions=self._over if self.done(seat) else self._available,
        )

    async def turn(self, seat: str) -> int:
        """Wait until a seat can decide; return the round it decides in."""
        if self._timing == "free" or self.done(seat):
            return self._barrier.round
        return await self._barrier.turn(seat)

    async def play(self, seat: str, action: Action, round_seen: int) -> ActionResult:
        """Take a seat's choice and return its result once the round is resolved."""
        if self.done(seat):
            return ActionResult(False, "The game is over.", done=True, observation=self.observation(seat))
        if self._timing == "free":
            return self._play_free(seat, action)
        return await self._barrier.act(seat, action, round_seen=round_seen)

    def leave(self, agent_id: str) -> None:
        """Let a player go: the seat plays its default choice from now on."""
        seat = agent_id if agent_id in SEATS else self._taken.get(agent_id)
        if seat is not None:
            self._barrier.leave(seat, replaced=True)

    def expire(self) -> tuple[str, ...]:
        """End the time for this round: missing seats get the default choice. Return who was forced."""
        return () if self._timing == "free" else self._barrier.expire()

    def render(self) -> View:
        """Return the finished rounds as a table."""
        rows = tuple(
            (str(i + 1), a, b) for i, (a, b) in enumerate(self._history[-10:], max(0, len(self._history) - 10))
        )
        totals = ("total", f"{self._totals['row']:g}", f"{self._totals['column']:g}")
        return View((TableBlock(("round", "row", "column"), (*rows, totals), self._title),), "Matrix game")

    def snapshot(self) -> bytes:
        """Return the finished rounds; choices of an unfinished round are made again."""
        state = {
            "game": self._title,
            "totals": self._totals,
            "history": self._history,
            "last": self._last,
            "open": self._open,
            "round": self._barrier.round,
            "turn": self._barrier.current_turn,
            "counts": {seat: self._played(seat) for seat in SEATS},
        }
        return json.dumps(state, sort_keys=True).encode()

    def restore(self, data: bytes) -> None:
        """Go on where the snapshot was taken.

        Raises:
            SnapshotError: it is damaged, or of another matrix.
        """
        try:
            state = json.loads(data)
            if state["game"] != self._title:
                raise SnapshotError(f"The snapshot is of {state['game']!r}, this is {self._title!r}.")
            totals = {seat: float(state["totals"][seat]) for seat in SEATS}
            history = [(self._choice(a), self._choice(b)) for a, b in state["history"]]
            last = {place: self._choice(choice) for place, choice in state["last"].items() if place in SEATS}
            counts = {seat: int(state["counts"][seat]) for seat in SEATS}
            open_choice = None if state["open"] is None else self._choice(state["open"])
            round_number, turn = int(state["round"]), state["turn"]
            if turn not in SEATS or round_number < 0 or min(counts.values()) < 0:
                raise ValueError("the round, the turn or the counts can't be so")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise SnapshotError(f"The matrix game's snapshot is damaged: {error}.") from error
        self._barrier.restart(round_number=round_number, turn=turn)
        self._totals, self._history, self._last, self._open = totals, history, last, open_choice
        self._counts = counts

    def _choice(self, word: object) -> str:
        if not isinstance(word, str) or word not in self._choices:
            raise ValueError(f"{str(word)[:40]!r} is no choice")
        return word

    def _played(self, seat: str) -> int:
        return self._counts[seat] if self._timing == "free" else len(self._history)

    def _pay(self, row: str, column: str) -> tuple[float, float]:
        x, y = self._payoffs[row, column]
        return float(x), float(y)

    def _play_free(self, seat: str, action: Action) -> ActionResult:
        other = SEATS[1 - SEATS.index(seat)]
        theirs = self._last.get(other, self._choices[0])
        pair = (action.name, theirs) if seat == "row" else (theirs, action.name)
        reward = self._pay(*pair)[SEATS.index(seat)]
        self._last[seat] = action.name
        self._totals[seat] += reward
        self._counts[seat] += 1
        message = f"You chose {action.name}, the other's last choice was {theirs}: you get {reward:g}."
        return ActionResult(True, message, reward, (), self.done(seat), self.observation(seat))

    def _resolve(self, actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        if self._timing == "alternating":
            return self._resolve_turn(*next(iter(actions.items())))
        payoffs = self._finish_round(actions["row"].name, actions["column"].name)
        return {seat: self._result(seat, payoffs[i]) for i, seat in enumerate(SEATS)}

    def _resolve_turn(self, seat: str, action: Action) -> Mapping[str, ActionResult]:
        if seat == "row":
            # Row's own result comes with column's answer.
            self._open = action.name
            return {}
        row, self._open = self._open or self._choices[0], None
        payoffs = self._finish_round(row, action.name)
        return {place: self._result(place, payoffs[i]) for i, place in enumerate(SEATS)}

    def _finish_round(self, row: str, column: str) -> tuple[float, float]:
        payoffs = self._pay(row, column)
        for seat, payoff in zip(SEATS, payoffs, strict=True):
            self._totals[seat] += payoff
        self._history.append((row, column))
        self._last = {"row": row, "column": column}
        self.mailbox.deliver()
        return payoffs

    def _result(self, seat: str, reward: float) -> ActionResult:
        mine = SEATS.index(seat)
        pair = self._history[-1]
        message = f"You chose {pair[mine]}, the other {pair[1 - mine]}: you get {reward:g}."
        return ActionResult(True, message, reward, (), self.done(seat), self.observation(seat))


class MatrixSeat:
    """The matrix game as one player sees it."""

    def __init__(self, game: MatrixGame, seat: str) -> None:
        self._game = game
        self._seat = seat
        self._round = 0
        self._declared = index_actions(game.action_space)

    @property
    def game_description(self) -> str:
        """The rules, and which player this is."""
        return f"{self._game.game_description}\nYou are {self._seat}."

    def render(self) -> View:
        """Return the finished rounds, which both players know."""
        return self._game.render()

    @property
    def action_space(self) -> ActionSpace:
        """One action for each choice."""
        return self._game.action_space

    async def observe(self) -> Observation:
        """Return the state at this player's next decision point."""
        self._round = await self._game.turn(self._seat)
        return self._game.observation(self._seat)

    async def act(self, action: Action) -> ActionResult:
        """Choose, and return the result once the round is resolved."""
        action, reason = check_action(action, self._declared)
        if reason:
            done, seen = self._game.done(self._seat), self._game.observation(self._seat)
            return ActionResult(False, reason, done=done, observation=seen)
        result = await self._game.play(self._seat, action, self._round)
        self._round = max(self._round, result.observation.step)
        return result

    def reset(self) -> Observation:
        """Refuse: one player can't reset a game for two.

        Raises:
            UsageError: always.
        """
        raise UsageError("One seat can't reset a shared game; reset the world.")

    def default_action(self) -> Action:
        """Return the first choice."""
        return self._game.default_action(self._seat)


def create_simultaneous(context: Context) -> MatrixGame:
    """Return a game in which both choose at the same time."""
    return _create(context, "simultaneous")


def create_alternating(context: Context) -> MatrixGame:
    """Return a game in which the second sees the first's choice."""
    return _create(context, "alternating")


def create_free(context: Context) -> MatrixGame:
    """Return a game without turns."""
    return _create(context, "free")


def _create(context: Context, timing: Timing) -> MatrixGame:
    game = str(context.config.get("game", "prisoners-dilemma"))
    if game not in GAMES:
        raise ConfigError(f"There is no matrix game {game!r}; the option game takes one of: {', '.join(GAMES)}.")
    given = context.config.get("rounds", 10)
    try:
        rounds = int(given)
    except (TypeError, ValueError):
        rounds = 0
    if rounds < 1:
        raise ConfigError(f"The option rounds={given!r} must be a whole number of at least 1.")
    return MatrixGame(timing, game, rounds)


def mean_payoff(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the payoff a decision, mean over all seats and episodes; 0 without any step."""
    steps = sum(e.steps for e in episodes)
    return sum(e.reward for e in episodes) / steps if steps else 0.0
