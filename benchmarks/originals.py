"""The figures of published-tables.md from the original libraries alone: nothing here imports WSAP."""

from __future__ import annotations

import hashlib
import math
import os
import random
import statistics
from collections.abc import Callable, Sequence
from functools import cache

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

MINIGRID_LEVELS = (
    "MiniGrid-DoorKey-5x5-v0", "MiniGrid-LavaGapS5-v0", "MiniGrid-UnlockPickup-v0", "MiniGrid-MultiRoom-N4-S5-v1",
    "MiniGrid-BlockedUnlockPickup-v0", "MiniGrid-KeyCorridorS3R1-v0", "MiniGrid-DoorKey-8x8-v0",
    "MiniGrid-KeyCorridorS3R3-v0",
)  # fmt: skip
MINIGRID_ACTIONS = ("turn_left", "turn_right", "forward", "pickup", "drop", "toggle")
"""In the order of MiniGrid's own numbers."""
CRAFTER_ACHIEVEMENTS = 22


def crafter_at_random(seed: int) -> int:
    """Return the achievements unlocked in one whole episode of Crafter, played uniformly at random, as a bit set."""
    import crafter

    env = crafter.Env(seed=seed)
    chooser = random.Random(f"original {seed}")
    env.reset()
    names: list[str] = []
    unlocked, done = 0, False
    while not done:
        _, _, done, info = env.step(chooser.randrange(env.action_space.n))
        names = names or sorted(info["achievements"])
        unlocked = sum(1 << number for number, name in enumerate(names) if info["achievements"][name])
    return unlocked


def crafter_progression(episode: int) -> float:
    """Return the share of Crafter's achievements that an episode unlocked."""
    return episode.bit_count() / CRAFTER_ACHIEVEMENTS


def crafter_score(episodes: Sequence[int]) -> float:
    """Return the paper's score: exp(mean over achievements of ln(1 + success rate in percent)) - 1."""
    rates = [100 * sum(e >> n & 1 for e in episodes) / len(episodes) for n in range(CRAFTER_ACHIEVEMENTS)]
    return math.exp(math.fsum(map(math.log1p, rates)) / CRAFTER_ACHIEVEMENTS) - 1


def crafter_score_interval(episodes: Sequence[int]) -> tuple[float, float]:
    """Return a 95 % interval of the score by the jackknife over episodes, corrected for bias."""
    n = len(episodes)
    hits = [sum(e >> a & 1 for e in episodes) for a in range(CRAFTER_ACHIEVEMENTS)]
    logs = [
        [math.log1p(100 * max(0, hits[a] - seen) / (n - 1)) for seen in (0, 1)] for a in range(CRAFTER_ACHIEVEMENTS)
    ]
    whole = crafter_score(episodes)
    left = [
        math.exp(math.fsum(logs[a][e >> a & 1] for a in range(CRAFTER_ACHIEVEMENTS)) / CRAFTER_ACHIEVEMENTS) - 1
        for e in episodes
    ]
    centre = n * whole - (n - 1) * statistics.fmean(left)
    half = 1.96 * statistics.pstdev(left) * math.sqrt(n - 1)
    return centre - half, centre + half


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return a 95 % interval of a mean by the normal distribution."""
    middle, half = statistics.fmean(values), 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return middle - half, middle + half


def minigrid_levels_solved(seed: int, actions: Sequence[str]) -> tuple[int, int]:
    """Return how many of the eight levels a sequence of actions solves in MiniGrid itself, each begun anew, and how
    many of the actions were played until the last was solved or one ended otherwise.

    The seed of a level is the first 8 bytes of SHA-256 of "SEED:level:0:NUMBER", modulo 2**31.
    """
    import gymnasium
    import minigrid  # noqa: F401  # registers its environments

    solved, played, env = 0, 0, None
    for name in actions:
        if env is None:
            env = gymnasium.make(MINIGRID_LEVELS[solved]).unwrapped
            digest = hashlib.sha256(f"{seed}:level:0:{solved}".encode()).digest()
            env.reset(seed=int.from_bytes(digest[:8], "big") % 2**31)
        _, reward, over, late, _ = env.step(MINIGRID_ACTIONS.index(name))
        played += 1
        if over and float(reward) > 0:
            solved, env = solved + 1, None
            if solved == len(MINIGRID_LEVELS):
                break
        elif over or late:
            break
    return solved, played


def axelrod_by_hand(turns: int = 200) -> dict[tuple[str, str], float]:
    """Return the same as `axelrod_payoffs` from the rules of the four strategies, written down here."""
    payoff = {"CC": 3, "CD": 0, "DC": 5, "DD": 1}
    strategies: dict[str, Callable[[str], str]] = {
        "tit-for-tat": lambda seen: seen[-1:] or "C",
        "grudger": lambda seen: "D" if "D" in seen else "C",
        "cooperator": lambda seen: "C",
        "defector": lambda seen: "D",
    }
    found = {}
    for name, own in strategies.items():
        for other, opponent in strategies.items():
            mine = theirs = ""
            for _ in range(turns):
                mine, theirs = mine + own(theirs), theirs + opponent(mine)
            found[name, other] = sum(payoff[a + b] for a, b in zip(mine, theirs, strict=True)) / turns
    return found


def axelrod_payoffs() -> dict[tuple[str, str], float]:
    """Return a strategy's payoff per turn against another one or itself, in a match of 200 turns, for all pairs.

    Raises:
        ImportError: `axelrod` is not installed.
    """
    import axelrod

    players = {
        "tit-for-tat": axelrod.TitForTat, "grudger": axelrod.Grudger, "cooperator": axelrod.Cooperator,
        "defector": axelrod.Defector,
    }  # fmt: skip
    found = {}
    for name, player in players.items():
        for other, opponent in players.items():
            match = axelrod.Match((player(), opponent()), turns=200)
            match.play()
            found[name, other] = match.final_score_per_turn()[0]
    return found


def mafia_chance(players: int, mafiosi: int, *, idle: bool = False) -> float:
    """Return the probability that the Mafia wins if everybody votes and kills at random, by a recursion.

    Each day one of the living is lynched, each night one of the town is killed. The Mafia wins as soon as it is not
    outnumbered, the town when no mafioso is left (Braverman, Etesami and Mossel, 2008).

    Args:
        players: number of players, mafiosi included.
        mafiosi: number of mafiosi.
        idle: everybody does nothing in half of the cases: a day without any vote lynches nobody, a night in which no
            mafioso acts kills nobody. One that leads the votes is as likely to be any of the living, by symmetry.
    """

    def over(n: int, m: int) -> float | None:
        return 0.0 if not m else 1.0 if 2 * m >= n else None

    @cache
    def day(n: int, m: int) -> float:
        if (end := over(n, m)) is not None:
            return end
        no_vote, no_kill = (0.5**n, 0.5**m) if idle else (0.0, 0.0)
        lynched = m / n * night(n - 1, m - 1) + (n - m) / n * night(n - 1, m)
        return (no_vote * (1 - no_kill) * day(n - 1, m) + (1 - no_vote) * lynched) / (1 - no_vote * no_kill)

    def night(n: int, m: int) -> float:
        if (end := over(n, m)) is not None:
            return end
        no_kill = 0.5**m if idle else 0.0
        return (1 - no_kill) * day(n - 1, m) + (no_kill * day(n, m) if no_kill else 0.0)

    return day(players, mafiosi)


def mafia_win_chance(players: int, mafiosi: int, games: int, seed: int = 0) -> float:
    """Return the share of games that the Mafia wins if everybody votes and kills at random, played here by counting.

    Each day one of the living is lynched, each night one of the town is killed. The Mafia wins as soon as it is not
    outnumbered, the town when no mafioso is left (Braverman, Etesami and Mossel, 2008).
    """
    chooser, wins = random.Random(seed), 0
    for _ in range(games):
        mafia, town = mafiosi, players - mafiosi
        while mafia and mafia < town:
            if chooser.randrange(mafia + town) < mafia:
                mafia -= 1
            else:
                town -= 1
            if mafia and mafia < town:
                town -= 1
        wins += mafia > 0
    return wins / games
