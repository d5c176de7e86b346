"""The roles of the Mafia."""

from __future__ import annotations

from wsap_tossim.engine.model import Attack, Category, Defense, Faction, If, Role, Verb

__all__ = ["MAFIA_ROLES"]

_GOAL = "You win with the Mafia, when all who would oppose it are dead; even if you are dead yourself."
_MATES = "You know the other members of the Mafia."
_TALK = If("night_talk_rounds", "You talk with them at night.")
_SUCCESSION = If(
    "promotion_of_mafia", "When neither Godfather nor Mafioso is left, you may be the one who becomes Mafioso."
)

MAFIA_ROLES: tuple[Role, ...] = (
    Role(
        name="Godfather",
        faction=Faction.MAFIA,
        category=Category.MAFIA_KILLING,
        attack=Attack.BASIC,
        defense=Defense.BASIC,
        unique=True,
        verbs=(Verb.KILL,),
        summary="You lead the Mafia and decide whom it kills.",
        abilities=(
            (
                "Each night you may have a player killed who is not of the Mafia. The Mafioso goes in your place;"
                " without a Mafioso who could go, you go yourself."
            ),
        ),
        attributes=("You seem innocent to the Sheriff.", "You have basic defense.", _MATES, _TALK),
        goal=_GOAL,
    ),
    Role(
        name="Mafioso",
        faction=Faction.MAFIA,
        category=Category.MAFIA_KILLING,
        attack=Attack.BASIC,
        unique=True,
        verbs=(Verb.KILL,),
        summary="You carry out the Mafia's kills.",
        abilities=(
            (
                "Each night you may attack a player who is not of the Mafia. If the Godfather chooses one too,"
                " you go there instead."
            ),
        ),
        attributes=("When the Godfather dies, you become Godfather.", _MATES, _TALK),
        goal=_GOAL,
    ),
    Role(
        name="Blackmailer",
        faction=Faction.MAFIA,
        category=Category.MAFIA_SUPPORT,
        verbs=(Verb.BLACKMAIL,),
        summary="You silence one player for the next day.",
        abilities=(
            "Each night you may blackmail a player who is not of the Mafia: it can't speak or whisper on the next day.",
            "By day you read what others whisper.",
        ),
        attributes=("The silenced can still vote.", _MATES, _TALK, _SUCCESSION),
        goal=_GOAL,
    ),
    Role(
        name="Consigliere",
        faction=Faction.MAFIA,
        category=Category.MAFIA_SUPPORT,
        verbs=(Verb.CONSULT,),
        summary="You find out exactly who somebody is.",
        abilities=("Each night you may look into a player who is not of the Mafia: you learn its exact role.",),
        attributes=(_MATES, _TALK, _SUCCESSION),
        goal=_GOAL,
    ),
    Role(
        name="Consort",
        faction=Faction.MAFIA,
        category=Category.MAFIA_SUPPORT,
        verbs=(Verb.BLOCK,),
        immune_to_block=True,
        summary="You distract one player each night, who then can't do anything.",
        abilities=("Each night you may block a player who is not of the Mafia: it does nothing and visits nobody.",),
        attributes=(
            "You can't be blocked yourself.",
            If("killer_strikes_back", "A Serial Killer whom you block attacks you."),
            "A Werewolf whom you block on an even night mauls all who came to it, you included.",
            _MATES,
            _TALK,
            _SUCCESSION,
        ),
        goal=_GOAL,
    ),
    Role(
        name="Disguiser",
        faction=Faction.MAFIA,
        category=Category.MAFIA_DECEPTION,
        verbs=(Verb.DISGUISE,),
        summary="You make a member of the Mafia look like somebody else, if it dies.",
        abilities=(
            (
                "Each night you may choose a member of the Mafia, yourself included, and a player who is not: if"
                " the first dies tonight or on the next day, it is shown to have had the role of the second."
            ),
        ),
        attributes=(
            "You visit the second player only.",
            "The will of the dead stays its own.",
            _MATES,
            _TALK,
            _SUCCESSION,
        ),
        goal=_GOAL,
    ),
    Role(
        name="Forger",
        faction=Faction.MAFIA,
        category=Category.MAFIA_DECEPTION,
        verbs=(Verb.FORGE,),
        uses={Verb.FORGE: 3},
        summary="You replace the last will of somebody who dies.",
        abilities=(
            (
                "Each night you may write a will for a player who is not of the Mafia: if it dies tonight, all"
                " are shown yours. You can do so three times; an attempt counts only if it took effect."
            ),
        ),
        attributes=(_MATES, _TALK, _SUCCESSION),
        goal=_GOAL,
    ),
    Role(
        name="Framer",
        faction=Faction.MAFIA,
        category=Category.MAFIA_DECEPTION,
        verbs=(Verb.FRAME,),
        summary="You make the innocent look guilty.",
        abilities=(
            (
                "Each night you may frame a player who is not of the Mafia: the Sheriff finds it suspicious, and"
                " the Investigator finds it in your group of roles."
            ),
        ),
        attributes=(
            If("frame_lasts", "A frame lasts until somebody has been misled by it."),
            If("frame_lasts", "A frame lasts for one night.", off=True),
            _MATES,
            _TALK,
            _SUCCESSION,
        ),
        goal=_GOAL,
    ),
    Role(
        name="Janitor",
        faction=Faction.MAFIA,
        category=Category.MAFIA_DECEPTION,
        verbs=(Verb.CLEAN,),
        uses={Verb.CLEAN: 3},
        summary="You hide who the dead were.",
        abilities=(
            (
                "Each night you may choose a player who is not of the Mafia: if it dies tonight, its role and"
                " will are hidden from all but you. You can do so three times; an attempt counts only if it took"
                " effect."
            ),
        ),
        attributes=(_MATES, _TALK, _SUCCESSION),
        goal=_GOAL,
    ),
)
