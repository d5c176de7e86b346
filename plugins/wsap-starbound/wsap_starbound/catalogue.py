"""The listing of the game, without its engine: options, achievements, skills, bonuses and terms."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

from wsap_core.protocol import Achievement, Bonus, TransferRule
from wsap_core.seams.options import read_option
from wsap_core.specs import AdapterSpec, EpisodeSummary, OptionDef, ScoreMetric

GAME_ID = "starbound"
MOST_SEATS = 4
_DATA = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text("utf-8"))
ACHIEVEMENTS = tuple(Achievement(*one) for one in _DATA["achievements"])
SKILLS = {domain: tuple(names) for domain, names in _DATA["skills"].items()}
"""Skill domain -> achievements that count as evidence."""
OPTIONS = tuple(OptionDef(*one) for one in _DATA["options"])
TERMS = {"spawn": ("challenging", "random"), "loadout": ("bare", "provisioned")}
"""What an entry can ask for besides the defaults."""
TRANSFER_RULES = tuple(
    TransferRule(rule, skill, level, Bonus(kind, name, count), told)
    for rule, skill, level, kind, name, count, told in _DATA["bonuses"]
)
QUESTS = {"pad": "repair_pad", "moon": "reach_moon", "lantern": "read_message"}
"""Quest -> the achievement that comes with its end."""


def _finished(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the mean number of finished quests per episode."""
    return sum(len({*QUESTS.values()} & {*e.achievements}) for e in episodes) / len(episodes) if episodes else 0.0


SCORE = ScoreMetric("quests", "Quests finished, of three", _finished, "", 0.0, 3.0)


def read_options(given: Mapping[str, Any]) -> dict[str, int]:
    """Return the options as numbers (Any: of every kind); `ConfigError` if one is invalid."""
    return {known.name: read_option(known, given.get(known.name, known.default)) for known in OPTIONS}


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of a world with these options: its seats."""
    seats = read_options(options)["seats"]
    abilities = tuple(a for a in spec.abilities if a != "multi-seat" or seats > 1)
    return replace(spec, abilities=abilities, seats=(seats, seats))
