"""The roles of the Mafia."""

from __future__ import annotations

from wsap_tossim.engine.data.model import Attack, Category, Defense, Faction, Role, Verb

__all__ = ["MAFIA_ROLES"]

_GOAL = "You win with the Mafia, when all who would oppose it are dead; even if you are dead yourself."

# fmt: off
MAFIA_ROLES: tuple[Role, ...] = (
    Role(
        "Godfather", Faction.MAFIA, Category.MAFIA_KILLING,
        """You lead the Mafia and decide whom it kills.
        - Each night you may have a player killed who is not of the Mafia. The Mafioso goes in your place; without a
          Mafioso who could go, you go yourself.
        - You seem innocent to the Sheriff.
        - You have basic defense.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        """,
        _GOAL, attack=Attack.BASIC, defense=Defense.BASIC, unique=True, verbs=(Verb.KILL,),
    ),
    Role(
        "Mafioso", Faction.MAFIA, Category.MAFIA_KILLING,
        """You carry out the Mafia's kills.
        - Each night you may attack a player who is not of the Mafia. If the Godfather chooses one too, you go there
          instead.
        - When the Godfather dies, you become Godfather.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        """,
        _GOAL, attack=Attack.BASIC, unique=True, verbs=(Verb.KILL,),
    ),
    Role(
        "Blackmailer", Faction.MAFIA, Category.MAFIA_SUPPORT,
        """You silence one player for the next day.
        - Each night you may blackmail a player who is not of the Mafia: it can't speak or whisper on the next day.
        - By day you read what others whisper.
        - The silenced can still vote.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        - if promotion_of_mafia: When neither Godfather nor Mafioso is left, you may be the one who becomes Mafioso.
        """,
        _GOAL, verbs=(Verb.BLACKMAIL,),
    ),
    Role(
        "Consigliere", Faction.MAFIA, Category.MAFIA_SUPPORT,
        """You find out exactly who somebody is.
        - Each night you may look into a player who is not of the Mafia: you learn its exact role.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        - if promotion_of_mafia: When neither Godfather nor Mafioso is left, you may be the one who becomes Mafioso.
        """,
        _GOAL, verbs=(Verb.CONSULT,),
    ),
    Role(
        "Consort", Faction.MAFIA, Category.MAFIA_SUPPORT,
        """You distract one player each night, who then can't do anything.
        - Each night you may block a player who is not of the Mafia: it does nothing and visits nobody.
        - You can't be blocked yourself.
        - if killer_strikes_back: A Serial Killer whom you block attacks you.
        - A Werewolf whom you block on an even night mauls all who came to it, you included.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        - if promotion_of_mafia: When neither Godfather nor Mafioso is left, you may be the one who becomes Mafioso.
        """,
        _GOAL, verbs=(Verb.BLOCK,), immune_to_block=True,
    ),
    Role(
        "Disguiser", Faction.MAFIA, Category.MAFIA_DECEPTION,
        """You make a member of the Mafia look like somebody else, if it dies.
        - Each night you may choose a member of the Mafia, yourself included, and a player who is not: if the first
          dies tonight or on the next day, it is shown to have had the role of the second.
        - You visit the second player only.
        - The will of the dead stays its own.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        - if promotion_of_mafia: When neither Godfather nor Mafioso is left, you may be the one who becomes Mafioso.
        """,
        _GOAL, verbs=(Verb.DISGUISE,),
    ),
    Role(
        "Forger", Faction.MAFIA, Category.MAFIA_DECEPTION,
        """You replace the last will of somebody who dies.
        - Each night you may write a will for a player who is not of the Mafia: if it dies tonight, all are shown
          yours. You can do so three times; an attempt counts only if it took effect.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        - if promotion_of_mafia: When neither Godfather nor Mafioso is left, you may be the one who becomes Mafioso.
        """,
        _GOAL, verbs=(Verb.FORGE,), uses={Verb.FORGE: 3},
    ),
    Role(
        "Framer", Faction.MAFIA, Category.MAFIA_DECEPTION,
        """You make the innocent look guilty.
        - Each night you may frame a player who is not of the Mafia: the Sheriff finds it suspicious, and the
          Investigator finds it in your group of roles.
        - if frame_lasts: A frame lasts until somebody has been misled by it.
        - unless frame_lasts: A frame lasts for one night.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        - if promotion_of_mafia: When neither Godfather nor Mafioso is left, you may be the one who becomes Mafioso.
        """,
        _GOAL, verbs=(Verb.FRAME,),
    ),
    Role(
        "Janitor", Faction.MAFIA, Category.MAFIA_DECEPTION,
        """You hide who the dead were.
        - Each night you may choose a player who is not of the Mafia: if it dies tonight, its role and will are hidden
          from all but you. You can do so three times; an attempt counts only if it took effect.
        - You know the other members of the Mafia.
        - if night_talk_rounds: You talk with them at night.
        - if promotion_of_mafia: When neither Godfather nor Mafioso is left, you may be the one who becomes Mafioso.
        """,
        _GOAL, verbs=(Verb.CLEAN,), uses={Verb.CLEAN: 3},
    ),
)
