"""The first half of a night: jail, transports, Witch, the Mafia's order, blocks, visits."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.night.abilities import forced_verb
from wsap_tossim.engine.night.tonight import Night

__all__ = ["plan"]

AT_HOME = frozenset(
    {Verb.ALERT, Verb.EXECUTE, Verb.HAUNT, Verb.HEAL_SELF, Verb.IGNITE, Verb.RAISE, Verb.REMEMBER, Verb.VEST}
)
"""Verbs without a visit."""


def plan(night: Night, choices: Mapping[int, Choice]) -> None:
    """Determine the actions and visits of a night from the choices."""
    _choose(night, choices)
    _transport(night)
    controlled = _control(night)
    _order(night, controlled)
    _block(night)
    _visit(night)


def _choose(night: Night, choices: Mapping[int, Choice]) -> None:
    state = night.state
    prisoner = state.prisoner
    for number in sorted(choices):
        choice = choices[number]
        state.tell_one(number, "chose", verb=choice.verb.value, targets=list(choice.targets))
        if choice.verb is not Verb.WAIT and number != prisoner:
            night.let(number, choice)


def _transport(night: Night) -> None:
    state, places = night.state, night.places
    pairs: list[list[int]] = []
    moved = 0
    for number in night.doing(Verb.TRANSPORT):
        one, other = targets = night.act_of(number).targets
        if state.prisoner in targets:
            state.tell_one(number, "told", code="transport_failed")
            continue
        places[one], places[other] = places[other], places[one]
        pairs.append([one, other])
        moved |= 1 << one | 1 << other
    if pairs:
        state.tell("moves", pairs=pairs, places=list(places))
        for number in range(len(state.players)):
            if moved >> number & 1:
                state.tell_one(number, "told", code="transported")


def _control(night: Night) -> int:
    """Carry out the Witches' control; return the mask of controlled players."""
    state = night.state
    controlled = told = 0
    for number in night.doing(Verb.CONTROL):  # Witches can't be controlled
        act = night.act_of(number)
        victim, onto = night.places[act.targets[0]], act.targets[1]
        one = state.players[victim]
        held = victim != state.prisoner and not one.role.immune_to_control
        state.tell("controls", player=number, victim=victim, onto=onto, held=held)
        if not held:
            state.tell_one(number, "told", code="control_failed")
            if victim not in (state.prisoner, number):
                state.tell_one(victim, "told", code="control_resisted")
            continue
        if not told >> victim & 1:
            told |= 1 << victim
            state.tell_one(victim, "told", code="controlled")
        if state.rules.witch_learns_role:
            state.tell_one(number, "result", verb=Verb.CONTROL.value, target=act.targets[0], role=one.role.name)
        verb = forced_verb(state, one)
        if verb is not None:
            controlled |= 1 << victim
            night.let(victim, Choice(verb, (victim, onto) if verb is Verb.DISGUISE else (onto,)))
    return controlled


def _order(night: Night, controlled: int) -> None:
    """Leave one member to carry out the Mafia's kill."""
    state = night.state
    killers = night.doing(Verb.KILL)
    if not killers:
        return
    mafiosi = [p.number for p in state.with_role("Mafioso") if p.number != state.prisoner]
    forced = [n for n in mafiosi if controlled >> n & 1]
    bosses = [n for n in killers if state.players[n].role.name == "Godfather"]
    if forced:
        goes = forced[0]
    elif bosses and mafiosi:
        goes = mafiosi[0]
        order = night.act_of(bosses[0])
        night.let(goes, order)
        state.tell_one(goes, "told", code="ordered", target=order.targets[0])
    else:
        goes = (bosses or killers)[0]
    for number in killers:
        if number != goes:
            night.let(number, None)


def _block(night: Night) -> None:
    state = night.state
    blocked_by = night.blocked_by
    resisted = 0
    for number in night.doing(Verb.BLOCK):
        target = night.places[night.act_of(number).targets[0]]
        held = target != state.prisoner and target != number and not state.players[target].role.immune_to_block
        state.tell("blocks", player=number, target=target, held=held)
        if held:
            blocked_by.setdefault(target, []).append(number)
        elif target not in (state.prisoner, number):
            resisted |= 1 << target
    if not blocked_by and not resisted:
        return
    for number in range(len(state.players)):
        if number in blocked_by:
            night.let(number, None)
            strikes = state.rules.killer_strikes_back and state.players[number].role.name == "Serial Killer"
            state.tell_one(number, "told", code="struck_back" if strikes else "blocked")
        elif resisted >> number & 1:
            state.tell_one(number, "told", code="block_resisted")


def _visit(night: Night) -> None:
    state, places = night.state, night.places
    for number, act in enumerate(night.acts):
        if act is None or act.verb in AT_HOME:
            continue
        verb = act.verb
        if verb is Verb.TRANSPORT:
            met = act.targets
        else:
            met = (places[act.targets[1 if verb is Verb.DISGUISE else 0]],)
            night.met[number] = met[0]
        for target in met:
            if target != number:
                night.visits.append((number, target, verb))
                night.visitors.setdefault(target, []).append(number)
                state.tell("visits", player=number, target=target, verb=verb.value)
