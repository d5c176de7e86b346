"""The roles that are neither of the Town nor of the Mafia."""

from __future__ import annotations

from wsap_tossim.engine.model import Attack, Category, Defense, Faction, If, Role, Verb

__all__ = ["NEUTRAL_ROLES"]

_LAST = "You win when you, or others of your kind, alone are left among those who could rule the town."

NEUTRAL_ROLES: tuple[Role, ...] = (
    Role(
        name="Amnesiac",
        faction=Faction.NEUTRAL,
        category=Category.BENIGN,
        verbs=(Verb.REMEMBER,),
        uses={Verb.REMEMBER: 1},
        summary="You have forgotten who you are, and can take the role of somebody who is dead.",
        abilities=(
            (
                "At night you may choose a dead player, and become what it was; all are told the role, but not"
                " that it is you."
            ),
        ),
        attributes=(
            "You can't remember a role that is unique.",
            If("roles_on_death", "You can't remember a role that was cleaned away."),
        ),
        goal="You win by the goal of the role that you remember; as an Amnesiac you can't win.",
    ),
    Role(
        name="Survivor",
        faction=Faction.NEUTRAL,
        category=Category.BENIGN,
        verbs=(Verb.VEST,),
        uses={Verb.VEST: 4},
        summary="You want nothing but to live.",
        abilities=("Four times in the game you may wear a vest for a night, which gives you basic defense.",),
        goal="You win if you are alive at the end, whoever else wins.",
    ),
    Role(
        name="Executioner",
        faction=Faction.NEUTRAL,
        category=Category.EVIL,
        defense=Defense.BASIC,
        summary="You want to see one member of the Town lynched.",
        abilities=("You know your target, and that it is of the Town.",),
        attributes=(
            "You have basic defense at night.",
            If("executioner_turns", "If your target dies in another way, you become a Jester."),
            If("executioner_turns", "If your target dies in another way, you can't win any more.", off=True),
        ),
        goal="You win if your target is lynched while you live, whoever else wins.",
    ),
    Role(
        name="Jester",
        faction=Faction.NEUTRAL,
        category=Category.EVIL,
        attack=Attack.UNSTOPPABLE,
        verbs=(Verb.HAUNT,),
        uses={Verb.HAUNT: 1},
        summary="You want to be lynched.",
        abilities=(
            If(
                "jester_haunts",
                "In the night after you were lynched, you may haunt one of those who wanted it: that player dies.",
            ),
        ),
        attributes=("The game goes on after you have won.",),
        goal="You win if you are lynched, whoever else wins.",
    ),
    Role(
        name="Witch",
        faction=Faction.NEUTRAL,
        category=Category.EVIL,
        defense=Defense.BASIC,
        verbs=(Verb.CONTROL,),
        immune_to_block=True,
        immune_to_control=True,
        summary="You force others to use their abilities as you want.",
        abilities=(
            (
                "Each night you may choose a player and a target, yourself included: the first uses its ability"
                " on the second, whatever it had chosen itself."
            ),
        ),
        attributes=(
            "You have basic defense until the night in which you are first attacked.",
            "You can't be blocked or controlled.",
            "The controlled are told that they were, but not by whom.",
            If("witch_learns_role", "You learn the role of a player that you controlled."),
        ),
        goal="You win if you are alive at the end and the Town has not won.",
    ),
    Role(
        name="Arsonist",
        faction=Faction.NEUTRAL,
        category=Category.NEUTRAL_KILLING,
        attack=Attack.UNSTOPPABLE,
        defense=Defense.BASIC,
        verbs=(Verb.DOUSE, Verb.IGNITE),
        summary="You douse players with gasoline, and set them all on fire at once.",
        abilities=(
            "Each night you may douse another player; it stays doused.",
            "Or you may ignite: all who are doused die, whatever protects them; you too, if another has doused you.",
        ),
        attributes=(
            "You have basic defense.",
            "If you wait, you clean yourself of gasoline.",
            If("doused_are_told", "Those whom you douse feel it."),
            If("detect_arsonist", "The Sheriff finds you suspicious."),
        ),
        goal=_LAST,
    ),
    Role(
        name="Serial Killer",
        faction=Faction.NEUTRAL,
        category=Category.NEUTRAL_KILLING,
        attack=Attack.BASIC,
        defense=Defense.BASIC,
        verbs=(Verb.STAB,),
        summary="You kill every night, and you are against everybody.",
        abilities=("Each night you may attack another player.",),
        attributes=(
            "You have basic defense.",
            If("killer_strikes_back", "Whoever blocks you is attacked in place of your target."),
            If("detect_serial_killer", "The Sheriff finds you suspicious."),
            "If you are jailed and not executed, you attack the Jailor.",
        ),
        goal=_LAST,
    ),
    Role(
        name="Werewolf",
        faction=Faction.NEUTRAL,
        category=Category.NEUTRAL_KILLING,
        attack=Attack.POWERFUL,
        defense=Defense.BASIC,
        unique=True,
        verbs=(Verb.MAUL,),
        summary="On even nights you tear everybody apart whom you meet.",
        abilities=(
            "On even nights you may go to another player: you attack it and all who visit it, with a powerful attack.",
            "If you wait or are blocked on an even night, you stay at home and attack all who visit you.",
        ),
        attributes=(
            "You have basic defense.",
            If("detect_werewolf", "The Sheriff finds you suspicious on even nights."),
        ),
        goal=_LAST,
    ),
    Role(
        name="Vampire",
        faction=Faction.VAMPIRES,
        category=Category.CHAOS,
        attack=Attack.BASIC,
        verbs=(Verb.BITE,),
        summary="You turn others into Vampires, one by one.",
        abilities=(
            (
                "The youngest Vampire may bite a player each night: most of the Town and of the harmless become"
                " Vampires, and those of the Mafia and other killers are attacked."
            ),
        ),
        attributes=(
            "You know the other Vampires.",
            If("night_talk_rounds", "You talk with them at night."),
            "After a night with a conversion you rest for a night.",
            If("vampires_at_most", "When {} Vampires live, a bite kills."),
            "A Vampire Hunter kills the Vampire that bites it.",
        ),
        goal="You win with the Vampires, when all who would oppose them are dead; even if you are dead yourself.",
    ),
)
