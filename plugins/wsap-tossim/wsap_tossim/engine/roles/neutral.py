"""The roles that are neither of the Town nor of the Mafia."""

from __future__ import annotations

from wsap_tossim.engine.data.model import Attack, Category, Defense, Faction, Role, Verb

__all__ = ["NEUTRAL_ROLES"]

_GOAL = "You win when you, or others of your kind, alone are left among those who could rule the town."

# fmt: off
NEUTRAL_ROLES: tuple[Role, ...] = (
    Role(
        "Amnesiac", Faction.NEUTRAL, Category.BENIGN,
        """You have forgotten who you are, and can take the role of somebody who is dead.
        - At night you may choose a dead player, and become what it was; all are told the role, but not that it is
          you.
        - You can't remember a role that is unique.
        - if roles_on_death: You can't remember a role that was cleaned away.
        """,
        "You win by the goal of the role that you remember; as an Amnesiac you can't win.",
        verbs=(Verb.REMEMBER,), uses={Verb.REMEMBER: 1},
    ),
    Role(
        "Survivor", Faction.NEUTRAL, Category.BENIGN,
        """You want nothing but to live.
        - Four times in the game you may wear a vest for a night, which gives you basic defense.
        """,
        "You win if you are alive at the end, whoever else wins.",
        verbs=(Verb.VEST,), uses={Verb.VEST: 4},
    ),
    Role(
        "Executioner", Faction.NEUTRAL, Category.EVIL,
        """You want to see one member of the Town lynched.
        - You know your target, and that it is of the Town.
        - You have basic defense at night.
        - if executioner_turns: If your target dies in another way, you become a Jester.
        - unless executioner_turns: If your target dies in another way, you can't win any more.
        """,
        "You win if your target is lynched while you live, whoever else wins.",
        defense=Defense.BASIC,
    ),
    Role(
        "Jester", Faction.NEUTRAL, Category.EVIL,
        """You want to be lynched.
        - if jester_haunts: In the night after you were lynched, you may haunt one of those who wanted it: that player
          dies.
        - The game goes on after you have won.
        """,
        "You win if you are lynched, whoever else wins.",
        attack=Attack.UNSTOPPABLE, verbs=(Verb.HAUNT,), uses={Verb.HAUNT: 1},
    ),
    Role(
        "Witch", Faction.NEUTRAL, Category.EVIL,
        """You force others to use their abilities as you want.
        - Each night you may choose a player and a target, yourself included: the first uses its ability on the
          second, whatever it had chosen itself.
        - You have basic defense until the night in which you are first attacked.
        - You can't be blocked or controlled.
        - The controlled are told that they were, but not by whom.
        - if witch_learns_role: You learn the role of a player that you controlled.
        """,
        "You win if you are alive at the end and the Town has not won.",
        defense=Defense.BASIC, verbs=(Verb.CONTROL,), immune_to_block=True, immune_to_control=True,
    ),
    Role(
        "Arsonist", Faction.NEUTRAL, Category.NEUTRAL_KILLING,
        """You douse players with gasoline, and set them all on fire at once.
        - Each night you may douse another player; it stays doused.
        - Or you may ignite: all who are doused die, whatever protects them; you too, if another has doused you.
        - You have basic defense.
        - If you wait, you clean yourself of gasoline.
        - if doused_are_told: Those whom you douse feel it.
        - if detect_arsonist: The Sheriff finds you suspicious.
        """,
        _GOAL, attack=Attack.UNSTOPPABLE, defense=Defense.BASIC, verbs=(Verb.DOUSE, Verb.IGNITE),
    ),
    Role(
        "Serial Killer", Faction.NEUTRAL, Category.NEUTRAL_KILLING,
        """You kill every night, and you are against everybody.
        - Each night you may attack another player.
        - You have basic defense.
        - if killer_strikes_back: Whoever blocks you is attacked in place of your target.
        - if detect_serial_killer: The Sheriff finds you suspicious.
        - If you are jailed and not executed, you attack the Jailor.
        """,
        _GOAL, attack=Attack.BASIC, defense=Defense.BASIC, verbs=(Verb.STAB,),
    ),
    Role(
        "Werewolf", Faction.NEUTRAL, Category.NEUTRAL_KILLING,
        """On even nights you tear everybody apart whom you meet.
        - On even nights you may go to another player: you attack it and all who visit it, with a powerful attack.
        - If you wait or are blocked on an even night, you stay at home and attack all who visit you.
        - You have basic defense.
        - if detect_werewolf: The Sheriff finds you suspicious on even nights.
        """,
        _GOAL, attack=Attack.POWERFUL, defense=Defense.BASIC, unique=True, verbs=(Verb.MAUL,),
    ),
    Role(
        "Vampire", Faction.VAMPIRES, Category.CHAOS,
        """You turn others into Vampires, one by one.
        - The youngest Vampire may bite a player each night: most of the Town and of the harmless become Vampires, and
          those of the Mafia and other killers are attacked.
        - You know the other Vampires.
        - if night_talk_rounds: You talk with them at night.
        - After a night with a conversion you rest for a night.
        - if vampires_at_most: When {} Vampires live, a bite kills.
        - A Vampire Hunter kills the Vampire that bites it.
        """,
        "You win with the Vampires, when all who would oppose them are dead; even if you are dead yourself.",
        attack=Attack.BASIC, verbs=(Verb.BITE,),
    ),
)
