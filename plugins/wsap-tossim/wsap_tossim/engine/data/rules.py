"""Versioned rule sets: every rule on which editions of the game disagree is a switch.

`docs/reference/tossim-rules.md` describes the switches; a change of a value's meaning increments the version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from wsap_core.errors import ConfigError

__all__ = ["CLASSIC", "RULE_SETS", "RuleSet", "rule_set"]


@dataclass(frozen=True)
class RuleSet:
    """The rules of one game. The defaults are those of the classic game."""

    name: str = "classic"
    version: int = 1

    # --- the day --------------------------------------------------------------------------
    first_day: Literal["talk", "vote", "none"] = "talk"
    """The first day: talk without a vote, a whole day, or none (the game starts with night 1)."""
    lynching: Literal["trial", "ballot"] = "trial"
    """By nomination, defense and judgement, or by one secret ballot that lynches the leader (a tie: at random)."""
    discussion_rounds: int = 2
    """Turns of each living player on the floor before nominations; 0 to 20."""
    nomination_rounds: int = 3
    """Turns of each living player on the floor during nominations; 1 to 20."""
    floor: Literal["round robin", "random", "bids"] = "round robin"
    """Speaking order: by seat, starting one seat further each day; random for each round; or by highest bid."""
    trials_a_day: int = 3
    open_verdicts: bool = True
    """Whether verdicts are public once all have voted."""
    deathless_days: int = 3
    """Days and nights without a death or conversion after which the game is a draw; 1 to 50."""
    longest_game: int = 40
    """Days after which the game is a draw."""
    parity: bool = False
    """Whether an evil side wins as soon as it has at least half of the living."""

    # --- information -----------------------------------------------------------------------
    roles_on_death: bool = True
    """Whether a dead player's role is public."""
    wills: bool = True
    """Whether there are last wills."""
    death_notes: bool = True
    """Whether killers leave death notes."""
    dead_talk: bool = False
    """Whether the dead can talk at night even if no Medium listens."""
    night_talk_rounds: int = 1
    """Rounds of talk on channels at night before the actions; 0 to 5."""
    longest_text: int = 400
    """Maximum characters of a speech or whisper."""
    tokens_a_day: int = 0
    """Tokens (of four characters) that each player may say and whisper per day; up to 100,000, 0 for no limit."""
    longest_will: int = 1000
    """Maximum characters of a will, a death note and the notebook."""

    # --- the night -------------------------------------------------------------------------
    detect_serial_killer: bool = True
    """Whether the Sheriff finds the Serial Killer suspicious."""
    detect_werewolf: bool = True
    """Whether the Sheriff finds the Werewolf suspicious on nights it hunts."""
    detect_arsonist: bool = False
    """Whether the Sheriff finds the Arsonist suspicious."""
    spy_hears_mafia: bool = False
    """Whether the Spy hears the Mafia's talk at night, without the speakers."""
    hunter_hears_vampires: bool = True
    """Whether a Vampire Hunter hears the Vampires' talk at night, without the speakers."""
    frame_lasts: bool = True
    """Whether a frame lasts until it has misled an investigator, otherwise for one night."""
    witch_learns_role: bool = False
    """Whether the Witch learns the role of the controlled player."""
    killer_strikes_back: bool = True
    """Whether a Serial Killer attacks players who block it, instead of being blocked."""
    jester_haunts: bool = True
    """Whether a lynched Jester may haunt one of the players who voted guilty."""
    executioner_turns: bool = True
    """Whether an Executioner becomes a Jester if its target dies unlynched; otherwise it can't win any more."""
    doused_are_told: bool = True
    """Whether doused players are told."""
    hunter_bullets: int = 1
    """Bullets of a Vampire Hunter who becomes a Vigilante; 0 to 3."""
    vampires_at_most: int = 4
    """Number of living Vampires at which a bite kills instead of converting."""
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
                raise ConfigError(f"The rule {name} is {value}; it must be from {low} to {high}.")

    @property
    def has_floor(self) -> bool:
        """Whether players ever have the floor by day."""
        return self.discussion_rounds > 0 or self.lynching == "trial"

    def to_json(self) -> dict[str, Any]:
        """Return all switches, with name and version."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuleSet:
        """Return a rule set from the output of `to_json`.

        Raises:
            ConfigError: it has an unknown switch, an invalid value or a later version.
        """
        rules = _switched(cls(), data)
        if rules.version > CLASSIC.version:
            raise ConfigError(
                f"The rule set {rules.name[:60]!r} has version {rules.version}; this package plays by version "
                f"{CLASSIC.version}, a later one may know it."
            )
        return rules


CLASSIC = RuleSet()
RULE_SETS: Mapping[str, RuleSet] = {
    "classic": CLASSIC,
    # The game of Braverman, Etesami and Mossel's formula for random play ("Mafia", 2008); see the reference.
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
    """Return a named rule set; with other switches its name becomes `classic+`, for example.

    Raises:
        ConfigError: there is no such rule set or switch, or a value is invalid.
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
            raise ConfigError(f"The rule {name} is {value!r}; it must be {_WORDS[kinds[name]]}.")
        if name in choices and value not in choices[name]:
            raise ConfigError(f"The rule {name} is {value!r}; it must be {' or '.join(map(repr, choices[name]))}.")
    return replace(base, **dict(values))


_WORDS = {bool: "yes or no", int: "a whole number", str: "a word"}
