"""Play three OpenSpiel games as recorded worlds, and compare the results with OpenSpiel's exact values.

    pip install open_spiel
    python benchmarks/bench_openspiel.py [--games N] [--quick]

All seats play uniformly at random. OpenSpiel's game tree gives the exact distributions of the first seat's return and
of the number of moves. Each mean must be in its 99 % confidence interval, each recorded episode must sum to zero, and
the world must pass the conformance suite.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspiel
from openspiel_games import Goofspiel, KuhnPoker, OpenSpielGame, TicTacToe

import wsap_nexus
from wsap_check import run_checks
from wsap_nexus.store.database import Database
from wsap_nexus.store.repository import Repository

Z = 2.5758
"""Standard deviations of a 99 % confidence interval."""


def outcomes(state: Any, chance: float = 1.0, moves: int = 0) -> Iterator[tuple[float, float, int]]:
    """Yield probability, first player's return and number of moves of every random continuation (Any: pyspiel)."""
    if state.is_terminal():
        yield chance, state.returns()[0], moves
        return
    if state.is_simultaneous_node():
        options = [(a, b) for a in state.legal_actions(0) for b in state.legal_actions(1)]
        for pair in options:
            child = state.clone()
            child.apply_actions(list(pair))
            yield from outcomes(child, chance / len(options), moves + 2)
        return
    drawn = state.is_chance_node()
    legal = state.chance_outcomes() if drawn else [(a, 1 / len(state.legal_actions())) for a in state.legal_actions()]
    for action, share in legal:
        yield from outcomes(state.child(action), chance * share, moves + (not drawn))


def exact(game: type[OpenSpielGame]) -> dict[str, tuple[float, float]]:
    """Return the mean and standard deviation of the first player's return and of the number of moves."""
    found = list(outcomes(pyspiel.load_game(game.game).new_initial_state()))
    assert math.isclose(sum(p for p, _, _ in found), 1.0)
    figures = {"return of the first": [(p, r) for p, r, _ in found], "moves": [(p, float(m)) for p, _, m in found]}
    result = {}
    for name, values in figures.items():
        mean = sum(p * x for p, x in values)
        result[name] = mean, math.sqrt(sum(p * (x - mean) ** 2 for p, x in values))
    return result


def recorded(game: type[OpenSpielGame], count: int, database: Path) -> list[dict[str, list[float]]]:
    """Play that many games in a recorded run, and return the rewards of each seat's steps from the log."""
    run = wsap_nexus.play(game, "random-legal", episodes=count, database=str(database)).run
    games: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with Database.open(database, read_only=True) as opened:
        for event in Repository(opened).read_events(str(run), kinds=("step",)):
            line = json.loads(event.body)["step"]
            games[event.episode][line["seat"]].append(line["result"]["reward"])
    return list(games.values())


def main() -> int:
    """Play, compare and print; 1 if a check fails."""
    parser = argparse.ArgumentParser(description="Compare worlds of OpenSpiel's games with exact values.")
    parser.add_argument("--games", type=int, default=5000, metavar="N", help="games of each kind (5000)")
    parser.add_argument("--quick", action="store_true", help="50 games of each kind")
    options = parser.parse_args()
    count, wrong = 50 if options.quick else options.games, 0
    for game in (KuhnPoker, TicTacToe, Goofspiel):
        report = run_checks(game)
        with tempfile.TemporaryDirectory() as folder:
            games = recorded(game, count, Path(folder) / "wsap.db")
        sums = Counter(sum(map(sum, seats.values())) for seats in games)
        print(
            f"{game.__name__}: {len(games)} games, {sums[0.0]} sum to zero, "
            f"conformance {'ok' if report.ok else 'FAILS'}"
        )
        wrong += sums[0.0] != count or not report.ok
        played = {
            "return of the first": [sum(seats["first"]) for seats in games],
            "moves": [float(sum(map(len, seats.values()))) for seats in games],
        }
        for name, (mean, deviation) in exact(game).items():
            found, margin = sum(played[name]) / len(games), Z * deviation / math.sqrt(len(games))
            inside = abs(found - mean) <= margin + 1e-9
            wrong += not inside
            print(f"  {name}: {found:.4f}, exact {mean:.4f} ± {margin:.4f}{'' if inside else '  OUTSIDE'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
