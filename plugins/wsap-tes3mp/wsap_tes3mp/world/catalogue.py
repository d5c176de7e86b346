"""The world's options, achievements, skills and bonuses; imported by listings of games."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import resources

from wsap_core.protocol import Achievement, Bonus, TransferRule
from wsap_core.specs import EpisodeSummary, OptionDef, ScoreMetric

GAME_ID = "morrowind"
MOST_SEATS = 8
_DATA = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text("utf-8"))
ACHIEVEMENTS = tuple(Achievement(*one) for one in _DATA["achievements"])
SKILLS = {domain: tuple(names) for domain, names in _DATA["skills"].items()}
"""Skill domain -> achievements that count as evidence."""
TERMS = {"spawn": ("challenging", "random"), "loadout": ("bare", "provisioned"), "difficulty": ("easy", "hard")}
"""What an entry into the embedded world can ask for."""
OPTIONS = tuple(OptionDef(*one) for one in _DATA["options"])
TRANSFER_RULES = tuple(
    TransferRule(rule, skill, level, Bonus("item", item, count), told)
    for rule, skill, level, item, count, told in _DATA["bonuses"]
)


def _quests_completed(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the mean number of completed quests per episode, at most two each."""
    names = ("complete_quest", "complete_two_quests")
    return sum(name in e.achievements for e in episodes for name in names) / len(episodes) if episodes else 0.0


SCORE = ScoreMetric("quests", "Quests completed, of two", _quests_completed, "", 0.0, 2.0)
