"""The roles of the Town."""

from __future__ import annotations

from wsap_tossim.engine.model import Attack, Category, Faction, If, Role, Verb

__all__ = ["TOWN_ROLES"]

_GOAL = (
    "You win with the Town, when every criminal and evildoer who could rule it is dead; even if you are dead yourself."
)

TOWN_ROLES: tuple[Role, ...] = (
    Role(
        name="Bodyguard",
        faction=Faction.TOWN,
        category=Category.PROTECTIVE,
        attack=Attack.POWERFUL,
        verbs=(Verb.GUARD, Verb.VEST),
        uses={Verb.VEST: 1},
        summary="You stand between one player and its attacker, at the price of your life.",
        abilities=(
            (
                "Each night you may guard another player. If somebody goes there to attack it, you take the"
                " attack in its place and strike back with a powerful attack."
            ),
            "Once in the game you may wear a vest instead, which gives you basic defense for the night.",
        ),
        attributes=(
            "You step in for one attacker only.",
            "You can't help against execution, fire, haunting, or those who kill their visitors.",
            "A Doctor who heals you can save you from the attack that you take.",
        ),
        goal=_GOAL,
    ),
    Role(
        name="Doctor",
        faction=Faction.TOWN,
        category=Category.PROTECTIVE,
        verbs=(Verb.HEAL, Verb.HEAL_SELF),
        uses={Verb.HEAL_SELF: 1},
        summary="You heal one player each night, so that most attacks don't kill it.",
        abilities=(
            "Each night you may heal another player: it has powerful defense until morning.",
            "Once in the game you may heal yourself instead.",
        ),
        attributes=(
            "You learn if the player that you healed was attacked.",
            "You can't heal a Mayor who has revealed.",
            "Healing does not help against execution, fire, haunting or guilt.",
        ),
        goal=_GOAL,
    ),
    Role(
        name="Escort",
        faction=Faction.TOWN,
        category=Category.SUPPORT,
        verbs=(Verb.BLOCK,),
        immune_to_block=True,
        summary="You distract one player each night, who then can't do anything.",
        abilities=("Each night you may block another player: it does nothing and visits nobody.",),
        attributes=(
            "You can't be blocked yourself.",
            If("killer_strikes_back", "A Serial Killer whom you block attacks you."),
            "A Werewolf whom you block on an even night mauls all who came to it, you included.",
        ),
        goal=_GOAL,
    ),
    Role(
        name="Investigator",
        faction=Faction.TOWN,
        category=Category.INVESTIGATIVE,
        verbs=(Verb.INVESTIGATE,),
        summary="You look into one player each night and learn a group of roles that it could have.",
        abilities=(
            "Each night you may investigate another player: you learn a short list of roles, one of them its own.",
        ),
        attributes=("A player who was framed looks like a Framer, and one who was doused like an Arsonist.",),
        goal=_GOAL,
    ),
    Role(
        name="Jailor",
        faction=Faction.TOWN,
        category=Category.KILLING,
        attack=Attack.UNSTOPPABLE,
        unique=True,
        verbs=(Verb.EXECUTE,),
        uses={Verb.EXECUTE: 3},
        summary="You take one player into jail each night, question it, and may execute it.",
        abilities=(
            (
                "At dusk you may jail another player for the night. It can do nothing and is well protected; it is"
                " not told who you are."
            ),
            If("night_talk_rounds", "You can talk with your prisoner."),
            "At night you may execute your prisoner, three times in the game, and not on the first night.",
        ),
        attributes=(
            "If you execute a member of the Town, you can execute nobody any more.",
            "A Serial Killer whom you jail and don't execute attacks you.",
        ),
        goal=_GOAL,
    ),
    Role(
        name="Lookout",
        faction=Faction.TOWN,
        category=Category.INVESTIGATIVE,
        verbs=(Verb.WATCH,),
        summary="You watch one player's house each night and see who comes.",
        abilities=("Each night you may watch another player: you learn who visited it.",),
        attributes=("You do not learn what the visitors did there.",),
        goal=_GOAL,
    ),
    Role(
        name="Mayor",
        faction=Faction.TOWN,
        category=Category.GOVERNMENT,
        unique=True,
        summary="You lead the Town, as soon as you tell it who you are.",
        abilities=("By day you may reveal yourself, once: from then on your votes count three.",),
        attributes=(
            "Once you have revealed, no Doctor can heal you.",
            "Once you have revealed, you can't whisper, and nobody can whisper to you.",
        ),
        goal=_GOAL,
    ),
    Role(
        name="Medium",
        faction=Faction.TOWN,
        category=Category.SUPPORT,
        uses={Verb.SEANCE: 1},
        summary="You are the Town's link to the dead.",
        abilities=(
            If("night_talk_rounds", "Each night you hear the dead and can speak to them, who don't learn who you are."),
            If("night_talk_rounds", "Once dead, you may hold one seance: for a night you talk with a living player."),
            If("night_talk_rounds", "By these rules nobody talks at night, so you have nothing to do.", off=True),
        ),
        goal=_GOAL,
    ),
    Role(
        name="Retributionist",
        faction=Faction.TOWN,
        category=Category.SUPPORT,
        unique=True,
        verbs=(Verb.RAISE,),
        uses={Verb.RAISE: 1},
        summary="You can bring one dead member of the Town back to life.",
        abilities=(
            If("roles_on_death", "Once you may raise a dead player who was shown to be of the Town; all see it live."),
            If(
                "roles_on_death",
                "Once you may raise a dead player, who has to be of the Town; all see it live.",
                off=True,
            ),
        ),
        attributes=(
            If(
                "roles_on_death",
                "You can't raise one whose role was cleaned away, and fail with one who was disguised.",
            ),
        ),
        goal=_GOAL,
    ),
    Role(
        name="Sheriff",
        faction=Faction.TOWN,
        category=Category.INVESTIGATIVE,
        verbs=(Verb.INTERROGATE,),
        summary="You question one player each night and learn whether it is suspicious.",
        abilities=("Each night you may interrogate another player: you learn whether it is suspicious.",),
        attributes=(
            "The Mafia are suspicious, except the Godfather; so are those who were framed.",
            If("detect_serial_killer", "The Serial Killer is suspicious too."),
            If("detect_werewolf", "The Werewolf is suspicious on even nights, when it hunts."),
            If("detect_arsonist", "The Arsonist is suspicious too."),
        ),
        goal=_GOAL,
    ),
    Role(
        name="Spy",
        faction=Faction.TOWN,
        category=Category.INVESTIGATIVE,
        summary="You know where the Mafia goes, and you overhear whispers.",
        abilities=(
            "Each night you learn whom members of the Mafia visited.",
            "By day you hear what others whisper.",
            If("spy_hears_mafia", "At night you hear what the Mafia says, but not who says it."),
        ),
        attributes=("You learn nothing in a night in which you are blocked or in jail.",),
        goal=_GOAL,
    ),
    Role(
        name="Transporter",
        faction=Faction.TOWN,
        category=Category.SUPPORT,
        verbs=(Verb.TRANSPORT,),
        immune_to_block=True,
        immune_to_control=True,
        summary="You swap two players' houses for a night, so that whoever goes to one meets the other.",
        abilities=(
            "Each night you may transport two players, yourself included: all that is done to one befalls the other.",
        ),
        attributes=(
            "You can't be blocked, and no Witch can control you.",
            "Both are told that they were transported.",
            "It fails if one of them is in jail.",
        ),
        goal=_GOAL,
    ),
    Role(
        name="Vampire Hunter",
        faction=Faction.TOWN,
        category=Category.KILLING,
        attack=Attack.BASIC,
        verbs=(Verb.HUNT,),
        summary="You seek out Vampires and kill them.",
        abilities=(
            "Each night you may visit another player: if it is a Vampire, you attack it.",
            "A Vampire who comes to bite you is attacked, and can't convert you.",
            If("hunter_hears_vampires", "At night you hear what the Vampires say, but not who says it."),
        ),
        attributes=(
            If("hunter_bullets", "When no Vampire is left, you become a Vigilante, with {} bullets."),
            If("hunter_bullets", "When no Vampire is left, you become a Vigilante without bullets.", off=True),
        ),
        goal=_GOAL,
    ),
    Role(
        name="Veteran",
        faction=Faction.TOWN,
        category=Category.KILLING,
        attack=Attack.POWERFUL,
        unique=True,
        verbs=(Verb.ALERT,),
        uses={Verb.ALERT: 3},
        immune_to_block=True,
        immune_to_control=True,
        summary="You can lie in wait at home and shoot whoever comes, friend or foe.",
        abilities=(
            (
                "Three times in the game you may be on alert for a night: you have basic defense, and attack"
                " everybody who visits you with a powerful attack."
            ),
        ),
        attributes=("You can't be blocked, and no Witch can control you.",),
        goal=_GOAL,
    ),
    Role(
        name="Vigilante",
        faction=Faction.TOWN,
        category=Category.KILLING,
        attack=Attack.BASIC,
        verbs=(Verb.SHOOT,),
        uses={Verb.SHOOT: 3},
        summary="You take the law into your own hands, with a gun.",
        abilities=("Three times in the game you may shoot another player at night; not on the first night.",),
        attributes=("If you kill a member of the Town, you die of guilt in the next night, and nothing can help you.",),
        goal=_GOAL,
    ),
    Role(
        name="Citizen",
        faction=Faction.TOWN,
        category=None,
        summary="You have no ability but your judgement, your voice and your vote.",
        abilities=("You can talk and vote.",),
        goal=_GOAL,
    ),
)
