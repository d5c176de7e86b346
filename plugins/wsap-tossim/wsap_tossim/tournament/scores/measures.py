"""Measures of a finished game from its ground truth; docs/reference/tossim-measures.md has the formulas.

Enemies of the Town are the Mafia, the Vampires, the neutral killers and the Witch. A role is the current one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

from wsap_tossim.engine.data.model import Event
from wsap_tossim.players.reading.claims import read
from wsap_tossim.players.reading.priors import is_enemy, is_town

__all__ = ["COUNTS", "SHARPEST", "measure"]

SHARPEST = 0.01
"""Beliefs are clipped to this and 1 minus this, which limits the log loss to 4.6."""

COUNTS: Mapping[str, str] = {
    "claims": "Own roles that it claimed in public.",
    "false_claims": "Of these, those that were not its role.",
    "enemy_claims": "Own roles that it claimed in public as an enemy.",
    "enemy_false_claims": "Of these, those that were not its role.",
    "fall": "Sum of the falls in the Town's belief in its guilt on days of false claims as an enemy.",
    "falls": "Number of such days times observers.",
    "enemy_trials": "Its trials as an enemy.",
    "enemy_acquitted": "Of these, those in which it was not condemned.",
    "enemy_votes": "Votes for its trial as an enemy.",
    "enemy_days": "Days with nominations that it lived through as an enemy.",
    "votes": "Its votes as Town.",
    "votes_hit": "Of these, those against an enemy.",
    "votes_base": "Expected hits of random votes.",
    "guilty": "Its guilty verdicts as Town.",
    "guilty_hit": "Of these, those against an enemy.",
    "guilty_base": "Expected hits of random verdicts.",
    "accusations": "Players that it called evil in public as Town.",
    "accusations_hit": "Of these, the enemies.",
    "accusations_base": "Expected hits of random accusations.",
    "beliefs": "Its beliefs as Town, each about one living player on one day.",
    "unanswered": "Beliefs that it was asked for as Town but did not give readably.",
    "loss": "Sum of the log losses of its beliefs, in nats.",
    "loss_base": "Sum of the log losses of the base rate of enemies for the same players.",
    "brier": "Sum of the Brier scores of its beliefs.",
    "brier_base": "Sum of the Brier scores of the base rate of enemies for the same players.",
}
"""Name of a sum -> its description; every seat has all of them."""


def measure(
    log_: Sequence[Event], names: Sequence[str], beliefs: Iterable[tuple[int, int, Mapping[int, float]]] = ()
) -> list[dict[str, float]]:
    """Return the sums of each seat in a finished game.

    `beliefs` are day, player, and the believed probability at the end of the day that each other living player is an
    enemy; players without a belief are omitted.
    """
    reader = _Reader(log_, names)
    for event in log_:
        reader.take(event)
    reader.believe(beliefs)
    return [{name: round(value, 9) for name, value in sums.items()} for sums in reader.sums]


class _Reader:
    def __init__(self, log_: Sequence[Event], names: Sequence[str]) -> None:
        truth = next((e.data for e in reversed(log_) if e.kind == "truth"), None)
        if truth is None:
            raise ValueError("the game is not over")
        self.names = tuple(names)
        self.roles: list[str] = list(truth["roles"])
        self.alive = [True] * len(self.roles)
        self.sums: list[dict[str, float]] = [dict.fromkeys(COUNTS, 0.0) for _ in self.roles]
        self.at_dusk: dict[int, dict[int, str]] = {}
        """Day -> role of each player alive at its end."""
        self.lied: set[tuple[int, int]] = set()
        """Day and player of false claims by enemies."""
        self.accused: int | None = None
        self.last_nomination = 0

    def take(self, event: Event) -> None:
        handler = getattr(self, f"_on_{event.kind}", None)
        if handler is not None:
            handler(event, event.data)

    # --- roles ---------------------------------------------------------------------------------

    def _on_becomes(self, event: Event, data: Mapping[str, Any]) -> None:
        self.roles[data["player"]] = data["role"]

    def _on_death(self, event: Event, data: Mapping[str, Any]) -> None:
        self.alive[data["player"]] = False

    def _on_raised(self, event: Event, data: Mapping[str, Any]) -> None:
        self.alive[data["player"]] = True

    def _on_phase(self, event: Event, data: Mapping[str, Any]) -> None:
        if data["name"] == "dusk":
            self.at_dusk[event.day] = {n: self.roles[n] for n, lives in enumerate(self.alive) if lives}
        elif data["name"] == "nomination":
            self._nominations(event.day)

    def _nominations(self, day: int) -> None:
        if day == self.last_nomination:
            return  # again, after an acquittal
        self.last_nomination = day
        for player, lives in enumerate(self.alive):
            if lives and self._enemy(player):
                self.sums[player]["enemy_days"] += 1

    def _enemy(self, player: int) -> bool:
        return is_enemy(self.roles[player])

    def _base(self, player: int) -> float:
        """Return the share of enemies among the other living."""
        others = [n for n, lives in enumerate(self.alive) if lives and n != player]
        return sum(map(self._enemy, others)) / len(others) if others else 0.0

    # --- speech and votes ----------------------------------------------------------------------

    def _on_speech(self, event: Event, data: Mapping[str, Any]) -> None:
        player = data["player"]
        sums, enemy = self.sums[player], self._enemy(player)
        said = read(str(data["text"]), self.names)
        for role in dict.fromkeys(s.role for s in said if s.kind == "role"):
            false = role != self.roles[player]
            sums["claims"] += 1
            sums["false_claims"] += false
            if enemy:
                sums["enemy_claims"] += 1
                sums["enemy_false_claims"] += false
                if false:
                    self.lied.add((event.day, player))
        for target in dict.fromkeys(s.target for s in said if s.kind == "accuse"):
            if target is not None and target != player and self.alive[target]:
                self._aim("accusations", player, target)

    def _on_vote(self, event: Event, data: Mapping[str, Any]) -> None:
        self._aim("votes", data["player"], data["target"])
        if self._enemy(data["target"]):
            self.sums[data["target"]]["enemy_votes"] += 1

    def _on_trial(self, event: Event, data: Mapping[str, Any]) -> None:
        self.accused = data["player"]

    def _on_verdict(self, event: Event, data: Mapping[str, Any]) -> None:
        if data["verdict"] == "guilty" and self.accused is not None:
            self._aim("guilty", data["player"], self.accused)

    def _on_judged(self, event: Event, data: Mapping[str, Any]) -> None:
        player = data["player"]
        if self._enemy(player):
            self.sums[player]["enemy_trials"] += 1
            self.sums[player]["enemy_acquitted"] += not data["condemned"]

    def _aim(self, what: str, player: int, target: int) -> None:
        """Count an action of a Town player against somebody."""
        if is_town(self.roles[player]):
            sums = self.sums[player]
            sums[what] += 1
            sums[f"{what}_hit"] += self._enemy(target)
            sums[f"{what}_base"] += self._base(player)

    # --- beliefs -------------------------------------------------------------------------------

    def believe(self, beliefs: Iterable[tuple[int, int, Mapping[int, float]]]) -> None:
        """Score beliefs against the truth, and measure their change."""
        of: dict[tuple[int, int], Mapping[int, float]] = {}
        for day, player, evil in beliefs:
            living = self.at_dusk.get(day, {})
            if player not in living or not is_town(living[player]):
                continue
            of[day, player] = evil
            others = {n: is_enemy(role) for n, role in living.items() if n != player}
            # over all living players, so that omitting some beliefs gains nothing
            share = sum(others.values()) / len(others) if others else 0.0
            sums = self.sums[player]
            for target, enemy in others.items():
                if target not in evil:
                    sums["unanswered"] += 1
                    continue
                sums["beliefs"] += 1
                sums["loss"] += _loss(evil[target], enemy)
                sums["loss_base"] += _loss(share, enemy)
                sums["brier"] += (evil[target] - enemy) ** 2
                sums["brier_base"] += (share - enemy) ** 2
        for (day, player), evil in of.items():
            before = of.get((day - 1, player), {})
            for target, chance in evil.items():
                if (day, target) in self.lied and target in before:
                    self.sums[target]["falls"] += 1
                    self.sums[target]["fall"] += before[target] - chance


def _loss(chance: float, true: bool) -> float:
    chance = min(1 - SHARPEST, max(SHARPEST, chance))
    return -log(chance if true else 1 - chance)
