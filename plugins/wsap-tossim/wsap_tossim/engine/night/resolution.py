"""The resolution of a night: the steps of `docs/reference/tossim-rules.md`, in order."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_tossim.engine.data.model import Choice, Faction, Verb
from wsap_tossim.engine.data.state import Player, State
from wsap_tossim.engine.death import become, die, new_target, settle
from wsap_tossim.engine.night.attacks import JESTER, attack
from wsap_tossim.engine.night.findings import investigate
from wsap_tossim.engine.night.protection import prepare
from wsap_tossim.engine.night.tonight import Night
from wsap_tossim.engine.night.visits import plan
from wsap_tossim.engine.roles.listed import ROLES

__all__ = ["resolve_night"]


def resolve_night(state: State, choices: Mapping[int, Choice]) -> None:
    """Resolve a night. The choices are legal by `night_options`; players without one wait."""
    for p in state.players:
        p.disguised_as = None
    night = Night(state)
    plan(night, choices)
    prepare(night)
    attack(night)
    investigate(night)
    _regret(night)
    dead = _bury(night)
    _convert(night)
    _raise(night)
    _remember(night)
    settle(state, dead)
    _close(night)


def _regret(night: Night) -> None:
    """Tell Vigilantes that they killed a member of the Town."""
    state = night.state
    forfeited = [
        number
        for number in night.doing(Verb.EXECUTE)
        if state.players[night.act_of(number).targets[0]].role.faction is Faction.TOWN
    ]
    for number in sorted({*night.guilty, *forfeited}):
        if number in forfeited:
            state.players[number].jail_forfeited = True
        state.tell_one(number, "told", code="forfeited" if number in forfeited else "guilt")


def _bury(night: Night) -> list[int]:
    state, players = night.state, night.state.players
    dead = sorted(night.causes)
    for number in dead:
        causes = night.causes[number]
        if JESTER in causes:
            state.tell("haunted", state.everyone, player=number)
        cleaners = night.cleaners.get(number, ())
        for janitor in cleaners:
            players[janitor].uses[Verb.CLEAN] -= 1
            one = players[number]
            state.tell_one(janitor, "result", verb=Verb.CLEAN.value, target=number, role=one.role.name, will=one.will)
        forged = None
        forger = night.forgers.get(number)
        if forger is not None and not cleaners:
            act = night.acts[forger]
            forged = act.text if act is not None else ""
            players[forger].uses[Verb.FORGE] -= 1
            state.tell_one(forger, "told", code="forged", target=number)
        notes = sorted(players[killer].note for killer in night.notes.get(number, ()))  # not to their writers
        die(state, number, causes, cleaned=bool(cleaners), forged=forged, notes=notes)
    return dead


def _convert(night: Night) -> None:
    state = night.state
    for number in night.bitten:
        one = state.players[number]
        if one.alive:
            one.converted_on = state.last_bite_day = state.last_death_day = state.day
            become(state, one, "Vampire", "conversion")


def _raise(night: Night) -> None:
    state = night.state
    for number in night.doing(Verb.RAISE):
        left = state.players[number].uses
        if Verb.RAISE in left:  # unless it became a Vampire tonight
            left[Verb.RAISE] -= 1
        one = state.players[night.act_of(number).targets[0]]
        if one.role.faction is not Faction.TOWN:
            state.tell_one(number, "told", code="raise_failed", target=one.number)
        elif not one.alive:
            state.set_alive(one.number, True)
            one.death_day = 0
            one.known_role = one.last_will_shown = None
            state.tell("raised", state.everyone, player=one.number)


def _remember(night: Night) -> None:
    state = night.state
    found: list[tuple[Player, str]] = []
    for number in night.doing(Verb.REMEMBER):
        one = state.players[number]
        if not one.alive or one.role.name != "Amnesiac":
            continue
        grave = state.players[night.act_of(number).targets[0]]
        role = ROLES[grave.known_role] if grave.known_role is not None else grave.role
        if role.unique:
            state.tell_one(number, "told", code="remember_failed", target=grave.number)
            continue
        found.append((one, role.name))
    for name in sorted(name for _, name in found):  # not to the Amnesiac
        state.tell("remembered", state.everyone, role=name)
    for one, name in found:
        _take_up(state, one, name)


def _take_up(state: State, one: Player, role: str) -> None:
    if role == "Executioner":
        one.target = new_target(state, one)
        if one.target is None:
            role = "Jester"
    elif role == "Vampire":
        one.converted_on = state.day
    become(state, one, role, "remembering")
    if role == "Executioner":
        state.tell_one(one.number, "role", role=role, mates={}, target=one.target)


def _close(night: Night) -> None:
    state = night.state
    lasts = state.rules.frame_lasts
    for p in state.players:
        if p.framed and (not lasts or night.looked >> p.number & 1):
            p.framed = False
        p.haunts = 0
    for number in night.guilty:
        if state.players[number].alive and state.players[number].role.name == "Vigilante":
            state.players[number].guilt = True
    for number in sorted(set(night.blackmailed)):
        one = state.players[number]
        if one.alive:
            one.blackmailed = True
            state.tell_one(number, "blackmailed")
    state.prisoner = None
    state.seances.clear()
