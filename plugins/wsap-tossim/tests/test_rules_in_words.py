"""The rules that players are told are those in force: of the game, of a day, and of a role."""

from __future__ import annotations

import random

import pytest

from wsap_core.errors import ConfigError
from wsap_tossim.engine.data.rules import RULE_SETS, RuleSet
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import random_choice
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.options import TownOptions
from wsap_tossim.perception.description import description_of, phases_of, role_sheet

HAPPENS = {
    "trial": ("on trial",),
    "verdict": ("judge",),
    "ballot": ("vote in secret at once",),
    "speech": ("have the floor",),
    "will": ("last wills",),
    "note": ("death notes",),
    "said": ("talk with each other",),
    "bid": ("bid for it",),
}
"""Kind of event -> words without which nobody was told that it can happen, and which are false where it can't."""


def told(**options: object) -> tuple[str, str]:
    """Return the description of a game, and what the tool `phases` says of its days."""
    chosen = TownOptions.read({"mode": "nine", **options})
    return description_of(chosen.setup, chosen.rules), phases_of(chosen.rules)


@pytest.mark.parametrize("name", [*RULE_SETS, "bids", "silent"])
def test_what_can_happen_is_told_and_nothing_else(name: str) -> None:
    more = {
        "bids": {"floor": "bids", "nomination_rounds": 9},
        "silent": {"wills": "no", "death_notes": "no", "night_talk_rounds": 0},
    }
    options = TownOptions.read({"mode": "any:12", **more.get(name, {"rules": name})})
    kinds: set[str] = set()
    for seed in range(4):
        game, rng = Game(options.setup, options.rules, seed), random.Random(seed)
        while not game.over:
            for player in game.waiting:
                game.write(player, "will", "It was me.")
                game.write(player, "note", "And you.")
            game.carry_out({player: random_choice(game, player, rng, talk=True) for player in game.waiting})
        kinds |= {event.kind for event in game.log}
    text = description_of(options.setup, options.rules)
    for kind, words in HAPPENS.items():
        assert all((word in text) is (kind in kinds) for word in words), (kind, text)


@pytest.mark.parametrize(
    ("options", "says", "never"),
    [
        ({"roles_on_death": "no"}, "the dead show their last wills", "roles and"),
        ({"roles_on_death": "no", "wills": "no"}, "In the morning all learn who died. ", "show their"),
        ({"open_verdicts": "no"}, "who judged how is told to nobody.", "once all have"),
        ({"first_day": "none"}, "The game begins with the first night.", "On the first day"),
        ({"first_day": "vote"}, "", "first day"),
        ({"parity": "yes"}, "An enemy side wins as soon as it is at least half of the living.", ""),
        ({"discussion_rounds": 0}, "have the floor in turn: 3 rounds in which", "discussion"),
        ({"trials_a_day": 1}, "At most 1 trial a day;", ""),
    ],
)
def test_a_switch_changes_what_is_told(options: dict[str, object], says: str, never: str) -> None:
    text, day = told(**options)
    assert says in text
    assert not never or (never not in text and never not in day)


def test_under_parity_nobody_is_told_of_trials_wills_or_speeches() -> None:
    for text in told(rules="parity"):
        for word in ("trial", "judge", "will.", "wills", "floor", "characters", "discussion", "at most"):
            assert word not in text, (word, text)
        assert "all vote in secret at once, and whoever has most votes is lynched" in text


@pytest.mark.parametrize(
    ("role", "switch", "on"),
    [
        ("Vampire Hunter", "hunter_hears_vampires", "hear what the Vampires say"),
        ("Spy", "spy_hears_mafia", "hear what the Mafia says"),
        ("Escort", "killer_strikes_back", "Serial Killer whom you block"),
        ("Sheriff", "detect_serial_killer", "The Serial Killer is suspicious"),
        ("Sheriff", "detect_arsonist", "The Arsonist is suspicious"),
        ("Jester", "jester_haunts", "haunt"),
        ("Executioner", "executioner_turns", "become a Jester"),
        ("Framer", "frame_lasts", "until somebody has been misled"),
        ("Witch", "witch_learns_role", "learn the role"),
        ("Arsonist", "doused_are_told", "feel it"),
        ("Janitor", "promotion_of_mafia", "becomes Mafioso"),
        ("Retributionist", "roles_on_death", "shown to be of the Town"),
    ],
)
def test_a_role_is_told_as_the_switch_is(role: str, switch: str, on: str) -> None:
    for value in (True, False):
        sheet = role_sheet(ROLES[role], RuleSet(**{switch: value}))  # type: ignore[arg-type]  # all are flags
        assert (on in sheet) is value, sheet


def test_numbers_of_the_rules_are_told_and_silence_is_no_talk() -> None:
    rules = RuleSet(hunter_bullets=2, vampires_at_most=3, night_talk_rounds=0, spy_hears_mafia=True)
    assert "with 2 bullets" in role_sheet(ROLES["Vampire Hunter"], rules)
    assert "When 3 Vampires live" in role_sheet(ROLES["Vampire"], rules)
    for role in ROLES.values():
        sheet = role_sheet(role, rules)
        assert not any(words in sheet for words in ("talk with", "hear what the", "hear the dead")), sheet


@pytest.mark.parametrize(("word", "value"), [("yes", True), ("No", False), ("on", True), ("false", False)])
def test_yes_is_a_yes(word: str, value: bool) -> None:
    read = TownOptions.read({"open_verdicts": word, "own_summaries": word})
    assert read.rules.open_verdicts is value
    assert read.own_summaries is value
    with pytest.raises(ConfigError, match="must be yes or no"):
        TownOptions.read({"open_verdicts": "perhaps"})
