"""Check the rules of ToSSim against a closed formula and in random games, and measure their speed.

    python benchmarks/bench_tossim_rules.py [--case proof|random|speed] [--games N] [--jobs N] [--json]

proof   The Mafia's probability of winning in random play, over N games (20,000) of each set-up of citizens and mafiosi
        under the rule set "parity", compared with the closed formula (after Braverman, Etesami and Mossel, "Mafia: a
        theoretical study of players and coalitions in a partial information environment", 2008), which must lie in the
        99 % interval around the measured share.
random  N random games (100,000) over all modes, random lists of 5 to 15 players, and rule sets with random switches:
        none may raise, reach an invalid state, or fail to end. Every hundredth is replayed from its record and must
        give the same log.
speed   Random games of fifteen players per second over all processes, without texts. Goal: 200 with two processes.
        Prints the range over tenths of the games. Each mode is played with and without discussion rounds, in which
        silent players have nothing to do. Also prints games per second of CPU time times processes, the rate on an idle
        machine; the goal is for wall-clock time.

The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from functools import cache
from typing import Any

from wsap_core.errors import ConfigError
from wsap_tossim.engine.data.model import Choice, Phase, Verb
from wsap_tossim.engine.data.rules import RULE_SETS, RuleSet, rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import play_out, random_choice
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.engine.setups import MODES, Setup, setup

Z99 = 2.5758
LESSONS = ((5, 1), (6, 1), (7, 2), (8, 1), (8, 2), (9, 2), (10, 3), (12, 2), (13, 3), (15, 4))
FIFTEEN = ("classic", "ranked", "any", "vampires")
WANTED_SPEED = 200.0
MOST_ROUNDS = 20_000


# --- the closed formula -------------------------------------------------------------------------------


@cache
def by_day(n: int, m: int) -> float:
    """Return the Mafia's probability of winning at the start of a day with m mafiosi among n living."""
    if m == 0:
        return 0.0
    if 2 * m >= n:
        return 1.0
    return m / n * by_night(n - 1, m - 1) + (n - m) / n * by_night(n - 1, m)


def by_night(k: int, j: int) -> float:
    """Return the same at the start of a night."""
    if j == 0:
        return 0.0
    return 1.0 if 2 * j >= k else by_day(k - 1, j)


def mafia_wins(task: tuple[int, int, int, int]) -> int:
    """Return the number of games that the Mafia wins; takes players, mafiosi, first seed, number of games."""
    players, mafiosi, first, count = task
    lesson, rules, wins = setup(f"lesson:{players}:{mafiosi}"), RULE_SETS["parity"], 0
    for seed in range(first, first + count):
        game, rng = Game(lesson, rules, seed), random.Random(seed + 1_000_000)
        while not game.over:
            game.carry_out({player: some_target(game, player, rng) for player in game.waiting})
        assert game.ending is not None
        wins += game.ending.side == "Mafia"
    return wins


def some_target(game: Game, player: int, rng: random.Random) -> Choice:
    """Vote for or kill a uniformly random player; nobody waits, so that there is one lynching per day."""
    for option in game.options(player):
        if option.slots:
            return Choice(option.verb, (rng.choice(option.slots[0]),))
    return Choice(Verb.WAIT)


def prove(games: int, jobs: int) -> list[dict[str, Any]]:
    """Return measured and exact probabilities for each set-up."""
    found = []
    with ProcessPoolExecutor(jobs) as pool:
        for players, mafiosi in LESSONS:
            parts = [(players, mafiosi, first, len(part)) for first, part in _parts(games, jobs)]
            share = sum(pool.map(mafia_wins, parts)) / games
            margin = Z99 * math.sqrt(share * (1 - share) / games)
            exact = by_day(players, mafiosi)
            found.append(
                {
                    "players": players,
                    "mafiosi": mafiosi,
                    "measured": share,
                    "margin": margin,
                    "formula": exact,
                    "ratio": share / exact,
                    "within": abs(share - exact) <= margin,
                }
            )
    return found


# --- random games of every kind -----------------------------------------------------------------------


def drawn_rules(rng: random.Random) -> RuleSet:
    """Return a named rule set, or one with random switches."""
    base = rng.choice(sorted(RULE_SETS))
    switches: dict[str, Any] = {}
    if rng.random() < 0.5:
        for field in fields(RuleSet):
            if rng.random() < 0.3 and isinstance(field.default, bool):
                switches[field.name] = rng.random() < 0.5
        switches["night_talk_rounds"] = rng.randrange(0, 3)
        switches["discussion_rounds"] = rng.randrange(0, 3)
        switches["first_day"] = rng.choice(("talk", "vote", "none"))
        switches["lynching"] = rng.choice(("trial", "ballot"))
        switches["floor"] = rng.choice(("round robin", "random", "bids"))
        switches["longest_game"] = rng.choice((3, 10, 40))
        switches["tokens_a_day"] = rng.choice((0, 0, 10))
    return rule_set(base, switches)


def drawn_setup(rng: random.Random) -> Setup:
    """Return a mode, all any, or a random valid list."""
    kind = rng.randrange(3)
    if kind == 0:
        return setup(rng.choice(sorted(MODES)))
    if kind == 1:
        return setup(f"any:{rng.randrange(5, 16)}")
    words = [*sorted(ROLES), "Random Town", "Random Mafia", "Random Neutral", "Any"]
    while True:
        try:
            return setup("classic", [rng.choice(words) for _ in range(rng.randrange(5, 16))])
        except ConfigError:
            continue  # a unique role twice, or one side alone


def try_games(task: tuple[int, int]) -> list[str]:
    """Play games and return their faults; takes first seed, number of games."""
    first, count = task
    wrong: list[str] = []
    for seed in range(first, first + count):
        rng = random.Random(seed)
        chosen, rules = drawn_setup(rng), drawn_rules(rng)
        try:
            game = Game(chosen, rules, seed)
            talk = seed % 10 == 0
            rounds = 0
            while not game.over:
                if found := impossible(game):
                    raise AssertionError(found)
                choices = {p: random_choice(game, p, rng, talk=talk) for p in game.waiting}
                game.resolve(choices) if seed % 7 == 0 else game.carry_out(choices)
                rounds += 1
                if rounds > MOST_ROUNDS:
                    raise AssertionError("it does not end")
            if found := ended_wrongly(game):
                raise AssertionError(found)
            if seed % 100 == 0 and Game.from_json(json.loads(json.dumps(game.to_json()))).log != game.log:
                raise AssertionError("its replay gives another log")
        except Exception as error:  # reported with its game
            wrong.append(f"seed {seed}, {chosen.slots}, {rules}: {type(error).__name__}: {error}")
    return wrong


def impossible(game: Game) -> str:
    """Return what is invalid in a running game, or an empty text."""
    if not game.waiting:
        return "it waits for nobody"
    state = game.state
    for number in game.waiting:
        player = state.players[number]
        if not player.alive and game.phase not in (Phase.NIGHT, Phase.DUSK, Phase.TALK_AT_NIGHT):
            return f"the dead player {number} is asked by day"
        if any(left < 0 for left in player.uses.values()):
            return f"player {number} has used more than it had"
    for name, role in ROLES.items():
        if role.unique and not game.setup.teaching and sum(p.alive and p.role.name == name for p in state.players) > 1:
            return f"there are two living of the unique role {name}"
    return ""


def ended_wrongly(game: Game) -> str:
    """Return what is invalid in a finished game, or an empty text."""
    assert game.ending is not None
    deaths: dict[int, int] = {}
    for event in game.log:
        if event.kind == "death":
            deaths[event.data["player"]] = deaths.get(event.data["player"], 0) + 1
        elif event.kind == "raised":
            deaths[event.data["player"]] -= 1
    for player in game.state.players:
        if deaths.get(player.number, 0) != (0 if player.alive else 1):
            return f"player {player.number} is {'alive' if player.alive else 'dead'} and died {deaths} times"
    if [event.number for event in game.log] != list(range(len(game.log))):
        return "the log has gaps"
    return "" if game.log[-1].kind == "truth" else "the truth is not told at the end"


def try_all(games: int, jobs: int) -> list[str]:
    """Return the faults of all games."""
    tasks = [(first, min(500, games - first)) for first in range(0, games, 500)]
    wrong: list[str] = []
    with ProcessPoolExecutor(jobs) as pool:
        for number, found in enumerate(pool.map(try_games, tasks), 1):
            wrong += found
            if sys.stderr.isatty():
                print(f"\r{min(games, number * 500):,} games, {len(wrong)} faults", end="", file=sys.stderr)
    return wrong


# --- speed --------------------------------------------------------------------------------------------


def time_games(task: tuple[str, bool, int, int]) -> float:
    """Return the CPU seconds of games; takes mode, whether there is discussion, seed, number."""
    mode, discussion, first, count = task
    chosen, rules = setup(mode), rule_set("classic", {} if discussion else {"discussion_rounds": 0})
    began = time.process_time()
    for seed in range(first, first + count):
        play_out(Game(chosen, rules, seed), random.Random(seed))
    return time.process_time() - began


def speed(games: int, jobs: int) -> list[dict[str, Any]]:
    """Return games per second over all processes, for each mode of fifteen players."""
    found = []
    with ProcessPoolExecutor(jobs) as pool:
        list(pool.map(time_games, [("classic", True, 0, 3)] * jobs))  # everything is imported
        for mode, discussion in itertools.product(FIFTEEN, (True, False)):
            size = max(1, games // 10)
            rates, by_processor = [], []
            for tenth in range(10):
                began = time.perf_counter()
                first = tenth * size
                parts = [(mode, discussion, first + f, len(p)) for f, p in _parts(size, jobs)]
                spent = sum(pool.map(time_games, parts))
                rates.append(size / (time.perf_counter() - began))
                by_processor.append(size / spent * len(parts))
            rate = statistics.median(rates)
            found.append(
                {
                    "mode": mode,
                    "discussion": discussion,
                    "rate": rate,
                    "low": min(rates),
                    "high": max(rates),
                    "by_processor": statistics.median(by_processor),
                    "wanted": WANTED_SPEED,
                    "ratio": rate / WANTED_SPEED,
                }
            )
    return found


def _parts(count: int, jobs: int) -> Iterable[tuple[int, range]]:
    size = -(-count // jobs)
    return [(first, range(first, min(first + size, count))) for first in range(0, count, size)]


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=("proof", "random", "speed"))
    parser.add_argument("--games", type=int, help="games of a set-up (20,000), in all (100,000), or of a mode (2,000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result: dict[str, Any] = {}
    good = True
    if given.case in (None, "proof"):
        rows = result["proof"] = prove(given.games or 20_000, given.jobs)
        good &= all(row["within"] for row in rows)
        if not given.json:
            print("The Mafia's share of wins in random play, measured and by the formula")
            for row in rows:
                print(
                    f"  {row['mafiosi']} of {row['players']:>2}: {row['measured']:.4f} ± {row['margin']:.4f}   "
                    f"{row['formula']:.4f}   ratio {row['ratio']:.3f}   {'ok' if row['within'] else 'OUTSIDE'}"
                )
    if given.case in (None, "random"):
        count = given.games or 100_000
        began = time.perf_counter()
        wrong = try_all(count, given.jobs)
        result["random"] = {"games": count, "faults": wrong[:20], "seconds": time.perf_counter() - began}
        good &= not wrong
        if not given.json:
            print(f"{count:,} random games of every kind: {len(wrong)} faults, {time.perf_counter() - began:.0f} s")
            for line in wrong[:10]:
                print(f"  {line}")
    if given.case in (None, "speed"):
        rows = result["speed"] = speed(given.games or 2_000, given.jobs)
        good &= all(row["ratio"] >= 1 for row in rows)
        if not given.json:
            print(f"Random games of fifteen players a second, {given.jobs} processes")
            for row in rows:
                print(
                    f"  {row['mode']:<9} {'' if row['discussion'] else 'no discussion':<14} "
                    f"{row['rate']:>4.0f} ({row['low']:.0f} to {row['high']:.0f})   goal {row['wanted']:.0f}   "
                    f"ratio {row['ratio']:.2f}   by processor time {row['by_processor']:.0f}"
                )
    if given.json:
        print(json.dumps(result))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
