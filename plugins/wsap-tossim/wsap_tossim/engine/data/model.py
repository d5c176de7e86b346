"""The data model of the game: roles, choices and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

__all__ = ["Attack", "Category", "Choice", "Defense", "Event", "Faction", "Option", "Phase", "Role", "Verb"]


class Faction(StrEnum):
    """The side that a role wins with; for the goals of neutral roles see `Role.goal`."""

    TOWN = "Town"
    MAFIA = "Mafia"
    NEUTRAL = "Neutral"
    VAMPIRES = "Vampires"


class Category(StrEnum):
    """The kind of a role; role lists ask for "Town Support" or "Random Neutral"."""

    GOVERNMENT = "Town Government"
    INVESTIGATIVE = "Town Investigative"
    KILLING = "Town Killing"
    PROTECTIVE = "Town Protective"
    SUPPORT = "Town Support"
    MAFIA_DECEPTION = "Mafia Deception"
    MAFIA_KILLING = "Mafia Killing"
    MAFIA_SUPPORT = "Mafia Support"
    BENIGN = "Neutral Benign"
    CHAOS = "Neutral Chaos"
    EVIL = "Neutral Evil"
    NEUTRAL_KILLING = "Neutral Killing"


class Attack(IntEnum):
    """Strength of an attack, which kills if it exceeds the defense."""

    NONE = 0
    BASIC = 1
    POWERFUL = 2
    UNSTOPPABLE = 3


class Defense(IntEnum):
    """Strength of a defense."""

    NONE = 0
    BASIC = 1
    POWERFUL = 2
    INVINCIBLE = 3


class Phase(StrEnum):
    """A phase of a day or night. All but TALK_AT_NIGHT, DUSK and NIGHT are public."""

    DISCUSSION = "discussion"
    """Talk in turns, without votes."""
    NOMINATION = "nomination"
    """Talk and votes in turns, until a trial or the end of the rounds."""
    DEFENSE = "defense"
    """The accused speaks."""
    JUDGEMENT = "judgement"
    """All but the accused vote guilty, innocent or abstain, simultaneously and in secret until all have voted."""
    LAST_WORDS = "last words"
    """The condemned speaks."""
    BALLOT = "ballot"
    """In rule sets without trials: a simultaneous secret vote that lynches the leader."""
    DUSK = "dusk"
    """Secret choices at the end of the day: of the Jailor and dead Mediums."""
    TALK_AT_NIGHT = "talk at night"
    """Simultaneous private talk on channels, before the actions."""
    NIGHT = "night"
    """Simultaneous secret actions."""
    OVER = "over"


class Verb(StrEnum):
    """The verbs of choices."""

    # by day
    SPEAK = "speak"
    WHISPER = "whisper"
    WAIT = "wait"
    VOTE = "vote"
    UNVOTE = "unvote"
    REVEAL = "reveal"
    GUILTY = "guilty"
    INNOCENT = "innocent"
    ABSTAIN = "abstain"
    BID_1 = "bid_1"
    """Bid for the floor; see `wsap_tossim.engine.bids`."""
    BID_2 = "bid_2"
    BID_3 = "bid_3"
    # at dusk
    JAIL = "jail"
    SEANCE = "seance"
    # at night
    SAY = "say"
    """Speak on one's channel at night: Mafia, Vampires, jail or the dead."""
    ALERT = "alert"
    BITE = "bite"
    BLACKMAIL = "blackmail"
    BLOCK = "block"
    CLEAN = "clean"
    CONTROL = "control"
    CONSULT = "consult"
    DISGUISE = "disguise"
    DOUSE = "douse"
    EXECUTE = "execute"
    FORGE = "forge"
    FRAME = "frame"
    GUARD = "guard"
    HAUNT = "haunt"
    HEAL = "heal"
    HEAL_SELF = "heal_self"
    HUNT = "hunt"
    IGNITE = "ignite"
    INTERROGATE = "interrogate"
    INVESTIGATE = "investigate"
    KILL = "kill"
    MAUL = "maul"
    RAISE = "raise"
    REMEMBER = "remember"
    SHOOT = "shoot"
    STAB = "stab"
    TRANSPORT = "transport"
    VEST = "vest"
    WATCH = "watch"


class Choice(NamedTuple):
    """A decision of a player."""

    verb: Verb
    targets: tuple[int, ...] = ()
    """Players by number from 0, one for each slot of the option."""
    text: str = ""
    """The text, if the option takes one."""


WAIT = Choice(Verb.WAIT)
"""Doing nothing; always legal."""


class Option(NamedTuple):
    """A legal choice, with its possible targets."""

    verb: Verb
    slots: tuple[tuple[int, ...], ...] = ()
    """The possible players for each target; all targets must differ."""
    text: bool = False
    """Whether it takes a text."""


class Event(NamedTuple):
    """An event of the game's log."""

    number: int
    """From 0, without gaps. Never shown to players, since it reveals the number of hidden events."""
    day: int
    """From 1; a night has the number of the day before it."""
    phase: Phase
    kind: str
    """See `EVENTS` in `wsap_tossim.engine.data.events`."""
    known_by: int
    """Bit i is set if player i may know it; 0 for events hidden until the game is over."""
    data: Mapping[str, Any]
    """JSON-ready; players by number. Do not modify."""


@dataclass(frozen=True)
class Role:
    """A role as data. The night's resolver implements its verbs."""

    name: str
    """"Town's" own word for it: "Investigator", "Serial Killer"."""
    faction: Faction
    category: Category | None
    """None for the Citizen, which is never drawn at random."""
    told: str
    """Its description: a summary line, then lines after a dash. A line can start with `if SWITCH:` or `unless SWITCH:`
    of the rules; `{}` is the switch's value."""
    goal: str
    """Its winning condition, in a sentence for its player."""
    attack: Attack = Attack.NONE
    defense: Defense = Defense.NONE
    unique: bool = False
    """Whether a game has at most one."""
    verbs: Sequence[Verb] = ()
    """Its verbs at night, limited by `Player.uses`."""
    uses: Mapping[Verb, int] | None = None
    """Limited verb -> uses in a game."""
    immune_to_block: bool = False
    immune_to_control: bool = False

    @property
    def summary(self) -> str:
        """The first line of `told`."""
        return self.told.partition("\n")[0]
