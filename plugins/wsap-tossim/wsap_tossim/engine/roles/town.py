"""The roles of the Town."""

from __future__ import annotations

from wsap_tossim.engine.data.model import Attack, Category, Faction, Role, Verb

__all__ = ["TOWN_ROLES"]

_GOAL = (
    "You win with the Town, when every criminal and evildoer who could rule it is dead; even if you are dead yourself."
)

# fmt: off
TOWN_ROLES: tuple[Role, ...] = (
    Role(
        "Bodyguard", Faction.TOWN, Category.PROTECTIVE,
        """You stand between one player and its attacker, at the price of your life.
        - Each night you may guard another player. If somebody goes there to attack it, you take the attack in its
          place and strike back with a powerful attack.
        - Once in the game you may wear a vest instead, which gives you basic defense for the night.
        - You step in for one attacker only.
        - You can't help against execution, fire, haunting, or those who kill their visitors.
        - A Doctor who heals you can save you from the attack that you take.
        """,
        _GOAL, attack=Attack.POWERFUL, verbs=(Verb.GUARD, Verb.VEST), uses={Verb.VEST: 1},
    ),
    Role(
        "Doctor", Faction.TOWN, Category.PROTECTIVE,
        """You heal one player each night, so that most attacks don't kill it.
        - Each night you may heal another player: it has powerful defense until morning.
        - Once in the game you may heal yourself instead.
        - You learn if the player that you healed was attacked.
        - You can't heal a Mayor who has revealed.
        - Healing does not help against execution, fire, haunting or guilt.
        """,
        _GOAL, verbs=(Verb.HEAL, Verb.HEAL_SELF), uses={Verb.HEAL_SELF: 1},
    ),
    Role(
        "Escort", Faction.TOWN, Category.SUPPORT,
        """You distract one player each night, who then can't do anything.
        - Each night you may block another player: it does nothing and visits nobody.
        - You can't be blocked yourself.
        - if killer_strikes_back: A Serial Killer whom you block attacks you.
        - A Werewolf whom you block on an even night mauls all who came to it, you included.
        """,
        _GOAL, verbs=(Verb.BLOCK,), immune_to_block=True,
    ),
    Role(
        "Investigator", Faction.TOWN, Category.INVESTIGATIVE,
        """You look into one player each night and learn a group of roles that it could have.
        - Each night you may investigate another player: you learn a short list of roles, one of them its own.
        - A player who was framed looks like a Framer, and one who was doused like an Arsonist.
        """,
        _GOAL, verbs=(Verb.INVESTIGATE,),
    ),
    Role(
        "Jailor", Faction.TOWN, Category.KILLING,
        """You take one player into jail each night, question it, and may execute it.
        - At dusk you may jail another player for the night. It can do nothing and is well protected; it is not told
          who you are.
        - if night_talk_rounds: You can talk with your prisoner.
        - At night you may execute your prisoner, three times in the game, and not on the first night.
        - If you execute a member of the Town, you can execute nobody any more.
        - A Serial Killer whom you jail and don't execute attacks you.
        """,
        _GOAL, attack=Attack.UNSTOPPABLE, unique=True, verbs=(Verb.EXECUTE,), uses={Verb.EXECUTE: 3},
    ),
    Role(
        "Lookout", Faction.TOWN, Category.INVESTIGATIVE,
        """You watch one player's house each night and see who comes.
        - Each night you may watch another player: you learn who visited it.
        - You do not learn what the visitors did there.
        """,
        _GOAL, verbs=(Verb.WATCH,),
    ),
    Role(
        "Mayor", Faction.TOWN, Category.GOVERNMENT,
        """You lead the Town, as soon as you tell it who you are.
        - By day you may reveal yourself, once: from then on your votes count three.
        - Once you have revealed, no Doctor can heal you.
        - Once you have revealed, you can't whisper, and nobody can whisper to you.
        """,
        _GOAL, unique=True,
    ),
    Role(
        "Medium", Faction.TOWN, Category.SUPPORT,
        """You are the Town's link to the dead.
        - if night_talk_rounds: Each night you hear the dead and can speak to them, who don't learn who you are.
        - if night_talk_rounds: Once dead, you may hold one seance: for a night you talk with a living player.
        - unless night_talk_rounds: By these rules nobody talks at night, so you have nothing to do.
        """,
        _GOAL, uses={Verb.SEANCE: 1},
    ),
    Role(
        "Retributionist", Faction.TOWN, Category.SUPPORT,
        """You can bring one dead member of the Town back to life.
        - if roles_on_death: Once you may raise a dead player who was shown to be of the Town; all see it live.
        - unless roles_on_death: Once you may raise a dead player, who has to be of the Town; all see it live.
        - if roles_on_death: You can't raise one whose role was cleaned away, and fail with one who was disguised.
        """,
        _GOAL, unique=True, verbs=(Verb.RAISE,), uses={Verb.RAISE: 1},
    ),
    Role(
        "Sheriff", Faction.TOWN, Category.INVESTIGATIVE,
        """You question one player each night and learn whether it is suspicious.
        - Each night you may interrogate another player: you learn whether it is suspicious.
        - The Mafia are suspicious, except the Godfather; so are those who were framed.
        - if detect_serial_killer: The Serial Killer is suspicious too.
        - if detect_werewolf: The Werewolf is suspicious on even nights, when it hunts.
        - if detect_arsonist: The Arsonist is suspicious too.
        """,
        _GOAL, verbs=(Verb.INTERROGATE,),
    ),
    Role(
        "Spy", Faction.TOWN, Category.INVESTIGATIVE,
        """You know where the Mafia goes, and you overhear whispers.
        - Each night you learn whom members of the Mafia visited.
        - By day you hear what others whisper.
        - if spy_hears_mafia: At night you hear what the Mafia says, but not who says it.
        - You learn nothing in a night in which you are blocked or in jail.
        """,
        _GOAL,
    ),
    Role(
        "Transporter", Faction.TOWN, Category.SUPPORT,
        """You swap two players' houses for a night, so that whoever goes to one meets the other.
        - Each night you may transport two players, yourself included: all that is done to one befalls the other.
        - You can't be blocked, and no Witch can control you.
        - Both are told that they were transported.
        - It fails if one of them is in jail.
        """,
        _GOAL, verbs=(Verb.TRANSPORT,), immune_to_block=True, immune_to_control=True,
    ),
    Role(
        "Vampire Hunter", Faction.TOWN, Category.KILLING,
        """You seek out Vampires and kill them.
        - Each night you may visit another player: if it is a Vampire, you attack it.
        - A Vampire who comes to bite you is attacked, and can't convert you.
        - if hunter_hears_vampires: At night you hear what the Vampires say, but not who says it.
        - if hunter_bullets: When no Vampire is left, you become a Vigilante, with {} bullets.
        - unless hunter_bullets: When no Vampire is left, you become a Vigilante without bullets.
        """,
        _GOAL, attack=Attack.BASIC, verbs=(Verb.HUNT,),
    ),
    Role(
        "Veteran", Faction.TOWN, Category.KILLING,
        """You can lie in wait at home and shoot whoever comes, friend or foe.
        - Three times in the game you may be on alert for a night: you have basic defense, and attack everybody who
          visits you with a powerful attack.
        - You can't be blocked, and no Witch can control you.
        """,
        _GOAL, attack=Attack.POWERFUL, unique=True, verbs=(Verb.ALERT,), uses={Verb.ALERT: 3}, immune_to_block=True,
        immune_to_control=True,
    ),
    Role(
        "Vigilante", Faction.TOWN, Category.KILLING,
        """You take the law into your own hands, with a gun.
        - Three times in the game you may shoot another player at night; not on the first night.
        - If you kill a member of the Town, you die of guilt in the next night, and nothing can help you.
        """,
        _GOAL, attack=Attack.BASIC, verbs=(Verb.SHOOT,), uses={Verb.SHOOT: 3},
    ),
    Role(
        "Citizen", Faction.TOWN, None,
        """You have no ability but your judgement, your voice and your vote.
        - You can talk and vote.
        """,
        _GOAL,
    ),
)
