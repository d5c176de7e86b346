"""The attacks of a night: attackers, protections and deaths."""

from __future__ import annotations

from wsap_tossim.engine.data.model import Attack, Category, Defense, Faction, Verb
from wsap_tossim.engine.night.abilities import hunting_night
from wsap_tossim.engine.night.protection import defense_of
from wsap_tossim.engine.night.tonight import Night

__all__ = ["attack"]

MAFIA = "the Mafia"
VIGILANTE = "a Vigilante"
SERIAL_KILLER = "a Serial Killer"
HUNTER = "a Vampire Hunter"
VAMPIRE = "a Vampire"
WEREWOLF = "a Werewolf"
BODYGUARD = "a Bodyguard"
VETERAN = "a Veteran"
ARSONIST = "an Arsonist"
JAILOR = "the Jailor"
JESTER = "a Jester's ghost"
GUILT = "guilt"

_DIRECT = {
    Verb.KILL: MAFIA,
    Verb.SHOOT: VIGILANTE,
    Verb.STAB: SERIAL_KILLER,
    Verb.HUNT: HUNTER,
    Verb.BITE: VAMPIRE,
    Verb.MAUL: WEREWOLF,
}
"""Attacks on visited players, in the order in which Bodyguards intercept them."""
_AT_HOME = ("Serial Killer", "Werewolf")
"""Roles that attack some of their visitors."""
_FROM_AFAR = (Verb.EXECUTE, Verb.HAUNT, Verb.IGNITE)
"""Unstoppable attacks, in order."""
_NOTED = frozenset({MAFIA, VIGILANTE, SERIAL_KILLER, HUNTER, VAMPIRE, WEREWOLF, ARSONIST, JAILOR})
"""Causes of death for which the killer leaves its note."""


class _Fight:
    __slots__ = ("defenses", "night", "survived")

    def __init__(self, night: Night) -> None:
        self.night = night
        self.defenses: dict[int, Defense] = {}
        self.survived: list[int] = []
        """Players who survived an attack, each once."""

    def defense(self, target: int) -> Defense:
        """Return a player's defense, constant for the night."""
        known = self.defenses.get(target)
        if known is None:
            known = self.defenses[target] = defense_of(self.night, self.night.state.players[target])
        return known

    def strike(self, attacker: int, target: int, strength: Attack, cause: str, *, noted: bool = False) -> bool:
        """Carry out one attack; return whether it kills."""
        night = self.night
        defense = self.defense(target)
        kills = strength > defense
        night.state.tell(
            "attacks",
            player=attacker if cause is not GUILT else None,
            target=target,
            attack=int(strength),
            defense=int(defense),
            kills=kills,
            how=cause,
        )
        if kills:
            causes = night.causes.setdefault(target, [])
            if cause not in causes:
                causes.append(cause)
            if cause is VIGILANTE and night.state.players[target].role.faction is Faction.TOWN:
                night.guilty.append(attacker)
            if noted and cause in _NOTED:
                night.notes.setdefault(target, []).append(attacker)
        elif target not in self.survived:
            self.survived.append(target)
        return kills

    def direct(self, attacker: int, target: int, strength: Attack, cause: str) -> None:
        """Let a player attack its host, unless a Bodyguard intervenes."""
        if self.guarded(attacker, target, strength, cause):
            return
        if not self.strike(attacker, target, strength, cause, noted=True):
            self.night.state.tell_one(attacker, "told", code="too_strong")

    def guarded(self, attacker: int, target: int, strength: Attack, cause: str) -> bool:
        """Let a remaining Bodyguard take the target's place; return whether one did."""
        guards = self.night.guards.get(target)
        if not guards:
            return False
        state = self.night.state
        guard = guards.pop(0)
        state.tell_one(target, "told", code="guarded")
        state.tell_one(guard, "told", code="fought")
        self.strike(attacker, guard, strength, cause)
        self.strike(guard, attacker, Attack.POWERFUL, BODYGUARD)
        return True


def attack(night: Night) -> None:
    """Carry out all attacks, and store the deaths and bites in the night."""
    fight = _Fight(night)
    _go_out(fight)
    _strike_back(fight)
    _from_afar(fight)
    _tell_survivors(fight)


def _go_out(fight: _Fight) -> None:
    night = fight.night
    for verb, cause in _DIRECT.items():
        for number in night.doing(verb):
            target = night.met[number]
            one = night.state.players[number]
            if verb is Verb.BITE:
                _bite(fight, number, target)
            elif verb is Verb.MAUL:
                fight.direct(number, target, Attack.POWERFUL, cause)
                _maul_visitors(fight, number, target)
            elif verb is Verb.HUNT:
                if night.state.players[target].role.faction is Faction.VAMPIRES:
                    fight.direct(number, target, Attack.BASIC, cause)
            else:
                if verb in one.uses:
                    one.uses[verb] -= 1
                fight.direct(number, target, Attack.BASIC, cause)


def _bite(fight: _Fight, number: int, target: int) -> None:
    night = fight.night
    state = night.state
    victim = state.players[target].role
    if fight.guarded(number, target, Attack.BASIC, VAMPIRE):
        return
    if victim.name == "Vampire Hunter" and target != state.prisoner:
        state.tell_one(target, "told", code="hunted_at_home")
        if not fight.strike(target, number, Attack.BASIC, HUNTER, noted=True):
            state.tell_one(number, "told", code="too_strong")
        return
    converts = (
        victim.faction in (Faction.TOWN, Faction.NEUTRAL)
        and victim.category is not Category.NEUTRAL_KILLING
        and len(state.of_faction(Faction.VAMPIRES)) < state.rules.vampires_at_most
    )
    if converts and fight.defense(target) < Attack.BASIC:
        state.tell(
            "attacks", player=number, target=target, attack=1, defense=0, kills=False, how="a bite that converts"
        )
        night.bitten.append(target)
    else:
        fight.direct(number, target, Attack.BASIC, VAMPIRE)


def _maul_visitors(fight: _Fight, number: int, where: int) -> None:
    for visitor in fight.night.visitors.get(where, ()):
        if visitor != number:
            fight.strike(number, visitor, Attack.POWERFUL, WEREWOLF)


def _strike_back(fight: _Fight) -> None:
    """Carry out attacks on visitors: Serial Killers, Werewolves, Veterans."""
    night = fight.night
    state = night.state
    prisoner = state.prisoner
    for number in sorted({*night.doing(Verb.ALERT), *(p.number for name in _AT_HOME for p in state.with_role(name))}):
        one = state.players[number]
        if night.alert >> number & 1:
            came = night.visitors.get(number, ())
            for visitor in came:
                fight.strike(number, visitor, Attack.POWERFUL, VETERAN)
            if came:
                state.tell_one(number, "told", code="alerted", number=len(set(came)))
        elif one.role.name == "Serial Killer":
            if state.rules.killer_strikes_back:
                for blocker in night.blocked_by.get(number, ()):
                    fight.strike(number, blocker, Attack.BASIC, SERIAL_KILLER, noted=True)
            if number == prisoner:
                _break_out(fight, number)
        elif one.role.name == "Werewolf" and number != prisoner and night.acts[number] is None and hunting_night(state):
            _maul_visitors(fight, number, number)


def _break_out(fight: _Fight, prisoner: int) -> None:
    night = fight.night
    executing = night.doing(Verb.EXECUTE)
    for jailor in night.state.with_role("Jailor"):
        if jailor.number not in executing:
            fight.strike(prisoner, jailor.number, Attack.BASIC, SERIAL_KILLER, noted=True)


def _from_afar(fight: _Fight) -> None:
    """Carry out unstoppable attacks: execution, fire, haunting, guilt."""
    night = fight.night
    state = night.state
    burning = False
    for number in sorted(n for verb in _FROM_AFAR for n in night.doing(verb)):
        one, act = state.players[number], night.act_of(number)
        if act.verb is Verb.EXECUTE:
            one.uses[Verb.EXECUTE] -= 1
            fight.strike(number, act.targets[0], Attack.UNSTOPPABLE, JAILOR, noted=True)
        elif act.verb is Verb.HAUNT:
            one.uses[Verb.HAUNT] -= 1
            fight.strike(number, act.targets[0], Attack.UNSTOPPABLE, JESTER)
        elif not burning:
            burning = True
            for p in state.players:
                if p.alive and p.doused:
                    fight.strike(number, p.number, Attack.UNSTOPPABLE, ARSONIST, noted=p.number != number)
    for p in state.players:
        if p.alive and p.guilt:
            fight.strike(p.number, p.number, Attack.UNSTOPPABLE, GUILT)


def _tell_survivors(fight: _Fight) -> None:
    night = fight.night
    state = night.state
    attacked = sorted({*fight.survived, *night.causes})
    for target in attacked:
        one = state.players[target]
        for healer in night.healers.get(target, ()):
            if healer != target:
                state.tell_one(healer, "told", code="target_attacked")
        if one.role.name == "Witch":
            one.hit = True
        if target in night.causes:
            continue
        saved = "behind_bars" if target == state.prisoner else "healed" if target in night.healers else "defended"
        state.tell_one(target, "told", code=saved)
