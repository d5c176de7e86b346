"""Repeated two-player matrix games with textbook payoffs: Axelrod 1984 for the prisoner's dilemma, Osborne and
Rubinstein, A Course in Game Theory, 1994, for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import ConfigError, SnapshotError
from wsap_core.protocol import (
    Action,
    ActionAvailability,
    ActionDef,
    ActionSpace,
    Event,
    Goal,
    Location,
    Observation,
    TableBlock,
    View,
)
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context
from wsap_core.seams.options import read_option
from wsap_core.specs import AdapterSpec, EpisodeSummary, Timing
from wsap_matrix.plugin import ROUNDS

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
"""Name -> (choices, payoffs of row and column for each pair of choices)."""


class MatrixGame(RoundGame):
    """A matrix game (of `GAMES`) with two seats, in which each seat gets `rounds` payoffs per episode.

    The timing is `simultaneous`, `alternating` (column sees row's choice) or `free` (each choice meets the other's last
    one, at first the first of the choices).
    """

    seats = SEATS
    talks = True

    def __init__(self, timing: Timing, game: str, rounds: int) -> None:
        self.timing = timing
        self._title = game
        self._choices, self._payoffs = GAMES[game]
        self.zero_sum = timing != "free" and all(sum(pair) == 0 for pair in self._payoffs.values())
        self._rounds = rounds
        self.action_space = ActionSpace(tuple(ActionDef(c, f"Choose {c}", (), (), "choice") for c in self._choices))
        self._available = tuple(ActionAvailability(c) for c in self._choices)
        self._over = tuple(ActionAvailability(c, False, "the game is over") for c in self._choices)
        self.game_description = self._describe()
        super().__init__()

    def _describe(self) -> str:
        order = {
            "simultaneous": "Both choose at the same time.",
            "alternating": "Row chooses first; column then chooses, knowing row's choice.",
            "free": "Both choose whenever they like; each choice meets the other's last one.",
        }[self.timing]
        table = "\n".join(f"row {a}, column {b}: row gets {x}, column {y}" for (a, b), (x, y) in self._payoffs.items())
        return f"{self._title}, {self._rounds} rounds. {order}\n{table}"

    @override
    def begin(self) -> None:
        self._totals = dict.fromkeys(SEATS, 0.0)
        self._history: list[tuple[str, str]] = []
        self._last: dict[str, str] = {}
        self._counts = dict.fromkeys(SEATS, 0)
        self._open: str | None = None

    @override
    def to_move(self) -> Sequence[str]:
        if self.timing == "alternating" and len(self._history) < self._rounds:
            return ("row",) if self._open is None else ("column",)
        return tuple(seat for seat in SEATS if self._played(seat) < self._rounds)

    @override
    def legal(self, seat: str) -> Sequence[str]:
        return self._choices

    @override
    def apply(self, moves: Mapping[str, Action]) -> None:
        chosen = {seat: action.name for seat, action in moves.items()}
        if self.timing == "free":
            ((seat, choice),) = chosen.items()
            theirs = {place: self._last.get(place, self._choices[0]) for place in SEATS}
            self._pay({**theirs, **chosen}, [seat])
            self._last[seat] = choice
            self._counts[seat] += 1
        elif self.timing == "alternating" and "row" in chosen:
            self._open = chosen["row"]
        else:
            self._last = {"row": self._open or "", **chosen}
            self._open = None
            self._pay(self._last, SEATS)
            self._history.append((self._last["row"], self._last["column"]))

    @override
    def hears(self) -> Sequence[str]:
        return SEATS if self._open is None else ()

    @override
    def returns(self) -> Mapping[str, float]:
        return self._totals

    @override
    def observation(self, seat: str) -> Observation:
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

    @override
    def message(self, seat: str, pay: float) -> str:
        theirs = self._last.get(SEATS[1 - SEATS.index(seat)], self._choices[0])
        other = "the other's last choice was" if self.timing == "free" else "the other"
        return f"You chose {self._last[seat]}, {other} {theirs}: you get {pay:g}."

    def render(self) -> View:
        """Return the finished rounds as a table."""
        rows = tuple(
            (str(i + 1), a, b) for i, (a, b) in enumerate(self._history[-10:], max(0, len(self._history) - 10))
        )
        totals = ("total", f"{self._totals['row']:g}", f"{self._totals['column']:g}")
        return View((TableBlock(("round", "row", "column"), (*rows, totals), self._title),), "Matrix game")

    @override
    def picture(self, seat: str) -> View:
        return self.render()

    @override
    def dump(self) -> JsonValue:
        return {
            "game": self._title,
            "totals": self._totals,
            "history": self._history,
            "last": self._last,
            "open": self._open,
            "counts": {seat: self._played(seat) for seat in SEATS},
        }

    @override
    def load(self, data: JsonValue) -> None:
        if data["game"] != self._title:
            raise SnapshotError(f"The snapshot is of {data['game']!r}, this is {self._title!r}.")
        totals = {seat: float(data["totals"][seat]) for seat in SEATS}
        history = [(self._choice(a), self._choice(b)) for a, b in data["history"]]
        last = {place: self._choice(choice) for place, choice in data["last"].items() if place in SEATS}
        counts = {seat: int(data["counts"][seat]) for seat in SEATS}
        if min(counts.values()) < 0:
            raise ValueError("the counts are invalid")
        self._open = None if data["open"] is None else self._choice(data["open"])
        self._totals, self._history, self._last, self._counts = totals, history, last, counts

    def _choice(self, word: object) -> str:
        if not isinstance(word, str) or word not in self._choices:
            raise ValueError(f"{str(word)[:40]!r} is not a choice")
        return word

    def _played(self, seat: str) -> int:
        return self._counts[seat] if self.timing == "free" else len(self._history)

    def _pay(self, choices: Mapping[str, str], seats: Sequence[str]) -> None:
        payoffs = dict(zip(SEATS, self._payoffs[choices["row"], choices["column"]], strict=True))
        for seat in seats:
            self._totals[seat] += payoffs[seat]


def create_simultaneous(context: Context) -> MatrixGame:
    """Return a game with simultaneous choices."""
    return _create(context, "simultaneous")


def create_alternating(context: Context) -> MatrixGame:
    """Return a game with alternating choices."""
    return _create(context, "alternating")


def create_free(context: Context) -> MatrixGame:
    """Return a game with free timing."""
    return _create(context, "free")


def _create(context: Context, timing: Timing) -> MatrixGame:
    game = str(context.config.get("game", "prisoners-dilemma"))
    if game not in GAMES:
        raise ConfigError(f"There is no matrix game {game!r}; the option game takes one of: {', '.join(GAMES)}.")
    return MatrixGame(timing, game, read_option(ROUNDS, context.config.get("rounds", ROUNDS.default)))


def with_bounds(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec with the least and the highest payoff as bounds of its score, unchanged for an unknown game."""
    game = str(options.get("game", "prisoners-dilemma"))
    if game not in GAMES:
        return spec
    payoffs = [float(payoff) for pair in GAMES[game][1].values() for payoff in pair]
    metrics = (replace(metric, low=min(payoffs), high=max(payoffs)) for metric in spec.score_metrics)
    return replace(spec, score_metrics=tuple(metrics))


def mean_payoff(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the mean payoff per decision, over all seats and episodes; 0 without any step."""
    steps = sum(e.steps for e in episodes)
    return sum(e.reward for e in episodes) / steps if steps else 0.0
