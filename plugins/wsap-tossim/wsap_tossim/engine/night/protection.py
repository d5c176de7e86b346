"""The middle of a night: protection and deception."""

from __future__ import annotations

from wsap_tossim.engine.data.model import Choice, Defense, Verb
from wsap_tossim.engine.data.state import Player
from wsap_tossim.engine.night.tonight import Night

__all__ = ["defense_of", "prepare"]


def prepare(night: Night) -> None:
    """Set up protections, and carry out deceptions."""
    _wash(night)
    for number, act in enumerate(night.acts):
        if act is not None:
            if act.verb in _PROTECTIONS:
                _protect(night, number, act.verb, night.met[number])
            elif act.verb in _DECEPTIONS:
                _deceive(night, number, act, night.met[number])


def defense_of(night: Night, player: Player) -> Defense:
    """Return a player's best defense tonight."""
    number = player.number
    if number == night.state.prisoner or number in night.healers:
        return Defense.POWERFUL
    if (night.alert | night.vested) >> number & 1:
        return Defense.BASIC
    return Defense.NONE if player.hit else player.role.defense


_PROTECTIONS = {
    Verb.ALERT: "alert",
    Verb.GUARD: "guard",
    Verb.HEAL: "healing",
    Verb.HEAL_SELF: "healing",
    Verb.VEST: "vest",
}
_DECEPTIONS = {
    Verb.BLACKMAIL: "blackmail",
    Verb.CLEAN: "clean",
    Verb.DISGUISE: "disguise",
    Verb.DOUSE: "douse",
    Verb.FORGE: "forge",
    Verb.FRAME: "frame",
}


def _wash(night: Night) -> None:
    """Clean idle Arsonists of gasoline."""
    state = night.state
    for p in state.players:
        if (
            p.doused
            and p.alive
            and p.role.name == "Arsonist"
            and night.acts[p.number] is None
            and p.number != state.prisoner
            and p.number not in night.blocked_by
        ):
            p.doused = False
            state.tell_one(p.number, "told", code="washed")


def _protect(night: Night, number: int, verb: Verb, met: int) -> None:
    state = night.state
    one = state.players[number]
    if verb in one.uses:
        one.uses[verb] -= 1
    target = number if met < 0 else met
    if verb is Verb.ALERT:
        night.alert |= 1 << number
    elif verb is Verb.VEST:
        night.vested |= 1 << number
    elif verb is Verb.GUARD:
        if target == number:
            return
        night.guards.setdefault(target, []).append(number)
    elif state.players[target].revealed:
        return
    else:
        night.healers.setdefault(target, []).append(number)
    state.tell("protects", player=number, target=target, means=_PROTECTIONS[verb])


def _deceive(night: Night, number: int, act: Choice, target: int) -> None:
    state = night.state
    one = state.players[target]
    verb = act.verb
    if verb is Verb.FRAME:
        one.framed = True
    elif verb is Verb.DOUSE:
        one.doused = True
        if state.rules.doused_are_told:
            state.tell_one(target, "told", code="doused")
    elif verb is Verb.BLACKMAIL:
        night.blackmailed.append(target)
    elif verb is Verb.CLEAN:
        night.cleaners.setdefault(target, []).append(number)
    elif verb is Verb.FORGE:
        night.forgers[target] = number
    else:
        member = act.targets[0]
        state.players[member].disguised_as = one.role
        state.tell("deceives", player=number, target=target, how="disguise", member=member)
        return
    state.tell("deceives", player=number, target=target, how=_DECEPTIONS[verb])
