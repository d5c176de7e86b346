"""The data model of the game: roles, choices, events, and who may know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

__all__ = ["Attack", "Category", "Choice", "Defense", "Event", "Faction", "Option", "Phase", "Role", "Verb"]


class Faction(StrEnum):
    """The side that a role wins with. Each neutral role has its own goal; see `Role.goal`."""

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
    """How strong an attack is. It kills when it exceeds the defense."""

    NONE = 0
    BASIC = 1
    POWERFUL = 2
    UNSTOPPABLE = 3


class Defense(IntEnum):
    """How strong a defense is."""

    NONE = 0
    BASIC = 1
    POWERFUL = 2
    INVINCIBLE = 3


class Phase(StrEnum):
    """A part of the day. Every phase but TALK_AT_NIGHT, DUSK and NIGHT is seen by all."""

    DISCUSSION = "discussion"
    """Talk in turns, no votes."""
    NOMINATION = "nomination"
    """Talk and votes in turns, until somebody is put on trial or the time is up."""
    DEFENSE = "defense"
    """The accused speaks."""
    JUDGEMENT = "judgement"
    """All but the accused: guilty, innocent, or nothing. At once, and in secret until all have voted."""
    LAST_WORDS = "last words"
    """The condemned speaks."""
    BALLOT = "ballot"
    """In rule sets without trials: one secret vote of all at once; whoever has most is lynched."""
    DUSK = "dusk"
    """Choices made by day and unseen: whom the Jailor takes, whom a dead Medium will speak to."""
    TALK_AT_NIGHT = "talk at night"
    """Private talk of those who have a channel, all at once, before they act."""
    NIGHT = "night"
    """All act at once, and unseen."""
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
    """For the floor, where it is bid for; see `wsap_tossim.engine.bids`."""
    BID_2 = "bid_2"
    BID_3 = "bid_3"
    # at dusk
    JAIL = "jail"
    SEANCE = "seance"
    # at night
    SAY = "say"
    """To one's channel at night: the Mafia, the Vampires, the jail, the dead."""
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
    """Players, by number from 0; as many as the option has slots."""
    text: str = ""
    """The text, if the option takes one."""


WAIT = Choice(Verb.WAIT)
"""Doing nothing; always legal."""


class Option(NamedTuple):
    """A legal choice, with its possible targets."""

    verb: Verb
    slots: tuple[tuple[int, ...], ...] = ()
    """The possible players for each target; one player can't fill two slots."""
    text: bool = False
    """Whether it takes a text."""


class Event(NamedTuple):
    """An event. The log of events is the game; what a player knows is a part of it."""

    number: int
    """From 0, without gaps. Never shown to a player: it would tell how much is hidden."""
    day: int
    """From 1. A night has the number of the day before it."""
    phase: Phase
    kind: str
    """See `EVENTS` in `wsap_tossim.engine.events`."""
    known_by: int
    """Bit i is set if player i may know it; 0 for what nobody may, before the game is over."""
    data: Mapping[str, Any]
    """JSON-ready; players by number. Must not be changed."""


@dataclass(frozen=True)
class Role:
    """A role, as data. What its verbs do at night is in the resolver, in one place for all roles."""

    name: str
    """"Town's" own word for it: "Investigator", "Serial Killer"."""
    faction: Faction
    category: Category | None
    """None for the Citizen, which no list draws by chance."""
    told: str
    """What its player is told: a summary, and on a line each what it can do and what is done to it, after a dash. A
    line can begin with `if SWITCH:` or `unless SWITCH:` of the rules; the switch's value stands at `{}`."""
    goal: str
    """When it wins, in a sentence for its player."""
    attack: Attack = Attack.NONE
    defense: Defense = Defense.NONE
    unique: bool = False
    """At most one in a game."""
    verbs: Sequence[Verb] = ()
    """Its verbs at night, each while `Player.uses` lasts."""
    uses: Mapping[Verb, int] | None = None
    """How often in a game, for each verb that has a limit."""
    immune_to_block: bool = False
    immune_to_control: bool = False

    @property
    def summary(self) -> str:
        """What it is, in one sentence."""
        return self.told.partition("\n")[0]
