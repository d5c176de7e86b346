"""The figures of published-tables.md from the original libraries alone: nothing here imports WSAP."""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections.abc import Sequence

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


def minigrid_levels_solved(seed: int, actions: Sequence[str]) -> int:
    """Return how many of the eight levels a sequence of actions solves in MiniGrid itself, each begun anew.

    The seed of a level is the first 8 bytes of SHA-256 of "SEED:level:0:NUMBER", modulo 2**31.
    """
    import gymnasium
    import minigrid  # noqa: F401  # registers its environments

    solved, env = 0, None
    for name in actions:
        if env is None:
            env = gymnasium.make(MINIGRID_LEVELS[solved]).unwrapped
            digest = hashlib.sha256(f"{seed}:level:0:{solved}".encode()).digest()
            env.reset(seed=int.from_bytes(digest[:8], "big") % 2**31)
        _, reward, over, late, _ = env.step(MINIGRID_ACTIONS.index(name))
        if over and reward > 0:
            solved, env = solved + 1, None
            if solved == len(MINIGRID_LEVELS):
                break
        elif over or late:
            break
    return solved


def axelrod_payoffs() -> dict[str, float]:
    """Return each strategy's mean payoff per turn over the four opponents, itself among them, 200 turns each.

    Raises:
        ImportError: `axelrod` is not installed.
    """
    import axelrod

    players = {
        "tit-for-tat": axelrod.TitForTat, "grudger": axelrod.Grudger, "cooperator": axelrod.Cooperator,
        "defector": axelrod.Defector,
    }  # fmt: skip
    means = {}
    for name, player in players.items():
        payoffs = []
        for opponent in players.values():
            match = axelrod.Match((player(), opponent()), turns=200)
            match.play()
            payoffs.append(match.final_score_per_turn()[0])
        means[name] = math.fsum(payoffs) / len(payoffs)
    return means


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
