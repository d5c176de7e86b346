"""Versioned rule sets: every rule on which editions of the game disagree is a switch.

The reference in the documentation (`docs/reference/tossim-rules.md`) says what each switch does; a
change of what a value means gives the rule set a new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from wsap_core.errors import ConfigError

__all__ = ["CLASSIC", "RULE_SETS", "RuleSet", "rule_set"]


@dataclass(frozen=True)
class RuleSet:
    """The rules of one game. Each switch's default is the classic game's."""

    name: str = "classic"
    version: int = 1

    # --- the day --------------------------------------------------------------------------
    first_day: Literal["talk", "vote", "none"] = "talk"
    """The first day: talk without a vote, a whole day, or nothing (the game begins with night 1)."""
    lynching: Literal["trial", "ballot"] = "trial"
    """By nomination, defense and judgement, or by one secret ballot whose leader is lynched (a tie: by lot)."""
    discussion_rounds: int = 2
    """How often each living player has the floor before nominations; 0 to 20."""
    nomination_rounds: int = 3
    """How often each has the floor while votes are taken; 1 to 20."""
    floor: Literal["round robin", "random", "bids"] = "round robin"
    """The order of speaking: by seat, starting one seat further each day; random for each round; or by highest bid."""
    trials_a_day: int = 3
    open_verdicts: bool = True
    """Whether verdicts are public once all have voted."""
    deathless_days: int = 3
    """After so many days and nights without a death or conversion the game is a draw; 1 to 50."""
    longest_game: int = 40
    """After so many days the game is a draw, whatever happened."""
    parity: bool = False
    """Whether evil wins as soon as it has at least half of the living."""

    # --- what is told ----------------------------------------------------------------------
    roles_on_death: bool = True
    """Whether a dead player's role is told to all."""
    wills: bool = True
    """Whether there are last wills."""
    death_notes: bool = True
    """Whether killers leave death notes."""
    dead_talk: bool = False
    """Whether the dead are asked to talk among themselves at night where no Medium listens."""
    night_talk_rounds: int = 1
    """How often those who share a channel may speak at night before all act; 0 to 5."""
    longest_text: int = 400
    """Characters of a speech or whisper."""
    tokens_a_day: int = 0
    """How many tokens each may say and whisper by day, of four characters each; 0 for any number, to 100,000."""
    longest_will: int = 1000
    """Characters of a will, a death note and a page of the notebook."""

    # --- the night -------------------------------------------------------------------------
    detect_serial_killer: bool = True
    """Whether the Sheriff finds the Serial Killer suspicious."""
    detect_werewolf: bool = True
    """Whether the Sheriff finds the Werewolf suspicious on nights it hunts."""
    detect_arsonist: bool = False
    """Whether the Sheriff finds the Arsonist suspicious."""
    spy_hears_mafia: bool = False
    """Whether the Spy hears what the Mafia says at night (without who said it)."""
    hunter_hears_vampires: bool = True
    """Whether a Vampire Hunter hears what the Vampires say at night (without who said it)."""
    frame_lasts: bool = True
    """Whether a frame lasts until it has misled somebody; otherwise for one night."""
    witch_learns_role: bool = False
    """Whether the Witch learns the role of whom it forces."""
    killer_strikes_back: bool = True
    """Whether a Serial Killer attacks those who block it; otherwise it is blocked like others."""
    jester_haunts: bool = True
    """Whether a lynched Jester may haunt one of those who wanted it."""
    executioner_turns: bool = True
    """Whether an Executioner whose target dies otherwise becomes a Jester; otherwise it stays, and can't win."""
    doused_are_told: bool = True
    """Whether those who are doused feel it."""
    hunter_bullets: int = 1
    """Bullets of a Vampire Hunter who becomes a Vigilante; 0 to 3."""
    vampires_at_most: int = 4
    """Number of living Vampires from which a bite kills instead of converting."""
    promotion_of_mafia: bool = True
    """Whether a member of the Mafia becomes Mafioso when neither Godfather nor Mafioso is left."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("discussion_rounds", 0, 20),
            ("nomination_rounds", 1, 20),
            ("trials_a_day", 1, 15),
            ("deathless_days", 1, 50),
            ("longest_game", 1, 200),
            ("night_talk_rounds", 0, 5),
            ("longest_text", 20, 2000),
            ("longest_will", 20, 4000),
            ("tokens_a_day", 0, 100_000),
            ("hunter_bullets", 0, 3),
            ("vampires_at_most", 1, 15),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"The rule {name} is {value}; it can be {low} to {high}.")

    @property
    def has_floor(self) -> bool:
        """Whether anybody ever has the floor by day: to speak, to whisper, to nominate."""
        return self.discussion_rounds > 0 or self.lynching == "trial"

    def to_json(self) -> dict[str, Any]:
        """Return all switches, with name and version."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuleSet:
        """Return the rule set that was written down.

        Raises:
            ConfigError: it has a switch that there is not, a value that can't be, or is of a later version.
        """
        # A rule set that was written down before there was this switch was played without it.
        rules = _switched(cls(hunter_hears_vampires=False), data)
        if rules.version > CLASSIC.version:
            raise ConfigError(
                f"The rule set {rules.name[:60]!r} has version {rules.version}; this package plays by version "
                f"{CLASSIC.version}, a later one may know it."
            )
        return rules


CLASSIC = RuleSet()
RULE_SETS: Mapping[str, RuleSet] = {
    "classic": CLASSIC,
    # Both sides play at random by the formula of Braverman, Etesami and Mossel's "Mafia" (2008): see the reference.
    "parity": RuleSet(
        name="parity",
        first_day="vote",
        lynching="ballot",
        discussion_rounds=0,
        night_talk_rounds=0,
        parity=True,
        wills=False,
        death_notes=False,
    ),
    "quick": RuleSet(name="quick", discussion_rounds=1, nomination_rounds=2, night_talk_rounds=0, trials_a_day=1),
    "older": RuleSet(
        name="older",
        detect_serial_killer=False,
        detect_werewolf=False,
        spy_hears_mafia=True,
        frame_lasts=False,
        witch_learns_role=True,
        open_verdicts=False,
    ),
}
"""The named rule sets."""


def rule_set(name: str, switches: Mapping[str, Any] | None = None) -> RuleSet:
    """Return a named rule set, with switches set otherwise; its name then says so (`classic+`).

    Raises:
        ConfigError: there is no such rule set or switch, or a value that can't be.
    """
    if name not in RULE_SETS:
        raise ConfigError(f"There is no rule set {name[:60]!r}; there are: {', '.join(RULE_SETS)}.")
    base = RULE_SETS[name]
    if not switches:
        return base
    return _switched(
        replace(base, name=f"{name}+"), {k: v for k, v in switches.items() if k not in ("name", "version")}
    )


def _switched(base: RuleSet, values: Mapping[str, Any]) -> RuleSet:
    kinds = {f.name: type(getattr(base, f.name)) for f in fields(base)}
    choices = {
        "first_day": ("talk", "vote", "none"),
        "lynching": ("trial", "ballot"),
        "floor": ("round robin", "random", "bids"),
    }
    for name, value in values.items():
        if name not in kinds:
            raise ConfigError(f"There is no rule {name!r}; the rules are: {', '.join(kinds)}.")
        if type(value) is not kinds[name]:
            raise ConfigError(f"The rule {name} is {value!r}; it takes {_WORDS[kinds[name]]}.")
        if name in choices and value not in choices[name]:
            raise ConfigError(f"The rule {name} is {value!r}; it can be {' or '.join(map(repr, choices[name]))}.")
    return replace(base, **dict(values))


_WORDS = {bool: "yes or no", int: "a whole number", str: "a word"}
