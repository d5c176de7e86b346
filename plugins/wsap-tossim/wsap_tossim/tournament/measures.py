"""Measures of a finished game from its ground truth; docs/reference/tossim-measures.md has the formulas.

Enemies of the Town are the Mafia, the Vampires, the neutral killers and the Witch; a player's role is the
one it has at that moment, for roles change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

from wsap_tossim.engine.model import Event
from wsap_tossim.players.claims import read
from wsap_tossim.players.priors import is_enemy, is_town

__all__ = ["COUNTS", "SHARPEST", "measure"]

SHARPEST = 0.01
"""Beliefs are taken for at least this and at most 1 minus this, so that being sure and wrong costs 4.6, not all."""

COUNTS: Mapping[str, str] = {
    "claims": "Own roles that it claimed in public.",
    "false_claims": "Of these, those that were not its role.",
    "enemy_claims": "Own roles that it claimed in public as an enemy of the Town.",
    "enemy_false_claims": "Of these, those that were not its role.",
    "fall": "As an enemy that claimed falsely: by how much the Town's belief in its guilt fell that day, summed up.",
    "falls": "How many such days and observers there are.",
    "enemy_trials": "Trials that it stood as an enemy.",
    "enemy_acquitted": "Of these, those in which it was not condemned.",
    "enemy_votes": "Votes for its trial as an enemy.",
    "enemy_days": "Days with nominations that it saw as an enemy.",
    "votes": "Votes that it gave as one of the Town.",
    "votes_hit": "Of these, those against an enemy.",
    "votes_base": "What voting by lot would have hit.",
    "guilty": "Guilty verdicts that it gave as one of the Town.",
    "guilty_hit": "Of these, those against an enemy.",
    "guilty_base": "What judging by lot would have hit.",
    "accusations": "Players that it called evil in public, as one of the Town.",
    "accusations_hit": "Of these, those that were enemies.",
    "accusations_base": "What accusing by lot would have hit.",
    "beliefs": "Beliefs that it gave as one of the Town, each about one living player on one day.",
    "unanswered": "Beliefs that it was asked for as one of the Town and did not give in a readable way.",
    "loss": "The log losses of the beliefs that it gave, summed up, in nats.",
    "loss_base": "The log losses of believing the share of enemies of the same players, summed up.",
    "brier": "The Brier scores of the beliefs that it gave, summed up.",
    "brier_base": "The Brier scores of believing the share of enemies of the same players, summed up.",
}
"""Name of a sum -> what it is of; every seat has them all."""


def measure(
    log_: Sequence[Event], names: Sequence[str], beliefs: Iterable[tuple[int, int, Mapping[int, float]]] = ()
) -> list[dict[str, float]]:
    """Return the sums of each seat in a finished game.

    Args:
        log_: all events of the game, oldest first.
        names: of the players, by number.
        beliefs: day, player, how likely it held each other living player for an enemy by the end of that day;
            whoever it said nothing of is left out.
    """
    reader = _Reader(log_, names)
    for event in log_:
        reader.take(event)
    reader.believe(beliefs)
    return [{name: round(value, 9) for name, value in sums.items()} for sums in reader.sums]


class _Reader:
    """Goes through a log with every player's true role in mind."""

    def __init__(self, log_: Sequence[Event], names: Sequence[str]) -> None:
        truth = next((e.data for e in reversed(log_) if e.kind == "truth"), None)
        if truth is None:
            raise ValueError("the game is not over")
        self.names = tuple(names)
        self.roles: list[str] = list(truth["roles"])
        self.alive = [True] * len(self.roles)
        self.sums: list[dict[str, float]] = [dict.fromkeys(COUNTS, 0.0) for _ in self.roles]
        self.at_dusk: dict[int, dict[int, str]] = {}
        """Day -> who lives by its end, and as what."""
        self.lied: set[tuple[int, int]] = set()
        """Day and player: claimed falsely as an enemy."""
        self.accused: int | None = None
        self.last_nomination = 0

    def take(self, event: Event) -> None:
        handler = getattr(self, f"_on_{event.kind}", None)
        if handler is not None:
            handler(event, event.data)

    # --- who is what ---------------------------------------------------------------------------

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

    # --- what is said and done -----------------------------------------------------------------

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

    # --- what was believed ---------------------------------------------------------------------

    def believe(self, beliefs: Iterable[tuple[int, int, Mapping[int, float]]]) -> None:
        """Score beliefs against the truth, and measure their change."""
        of: dict[tuple[int, int], Mapping[int, float]] = {}
        for day, player, evil in beliefs:
            living = self.at_dusk.get(day, {})
            if player not in living or not is_town(living[player]):
                continue
            of[day, player] = evil
            others = {n: is_enemy(role) for n, role in living.items() if n != player}
            # Of everybody who lives, whomever it spoke of: what is left out must not tell who is who.
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
