"""Investigation results of a night."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_tossim.engine.data.model import Faction, Verb
from wsap_tossim.engine.data.state import Player, State
from wsap_tossim.engine.night.abilities import hunting_night
from wsap_tossim.engine.night.tonight import Night

__all__ = ["GROUPS", "group_of", "investigate", "is_suspicious"]

GROUPS: tuple[tuple[str, ...], ...] = (
    ("Vigilante", "Veteran", "Mafioso", "Citizen"),
    ("Medium", "Janitor", "Retributionist"),
    ("Survivor", "Vampire Hunter", "Amnesiac"),
    ("Spy", "Blackmailer", "Jailor"),
    ("Sheriff", "Executioner", "Werewolf"),
    ("Framer", "Vampire", "Jester"),
    ("Lookout", "Forger", "Witch"),
    ("Escort", "Transporter", "Consort"),
    ("Doctor", "Disguiser", "Serial Killer"),
    ("Investigator", "Consigliere", "Mayor"),
    ("Bodyguard", "Godfather", "Arsonist"),
)
"""The groups of roles that an Investigator can find."""
_GROUP_OF: Mapping[str, tuple[str, ...]] = {name: group for group in GROUPS for name in group}


def investigate(night: Night) -> None:
    """Tell each investigator its result."""
    state = night.state
    for number, act in enumerate(night.acts):
        if act is not None and act.verb in _LOOKS:
            met = night.met[number]
            found = _LOOKS[act.verb](night, number, state.players[met])
            state.tell_one(number, "result", verb=act.verb.value, target=act.targets[0], **found)
    _spy(night)


def group_of(player: Player) -> tuple[str, ...]:
    """Return the group of roles that the Investigator finds for a player."""
    if player.framed:
        return _GROUP_OF["Framer"]
    return _GROUP_OF["Arsonist" if player.doused else player.role.name]


def is_suspicious(state: State, player: Player) -> bool:
    """Return whether the Sheriff finds a player suspicious tonight."""
    if player.framed:
        return True
    role, rules = player.role, state.rules
    if role.faction is Faction.MAFIA:
        return role.name != "Godfather"
    if role.name == "Serial Killer":
        return rules.detect_serial_killer
    if role.name == "Werewolf":
        return rules.detect_werewolf and hunting_night(state)
    return role.name == "Arsonist" and rules.detect_arsonist


def _interrogate(night: Night, number: int, target: Player) -> dict[str, object]:
    night.looked |= target.mask
    return {"suspicious": is_suspicious(night.state, target)}


def _investigate(night: Night, number: int, target: Player) -> dict[str, object]:
    night.looked |= target.mask
    return {"group": list(group_of(target))}


def _consult(night: Night, number: int, target: Player) -> dict[str, object]:
    return {"role": target.role.name}


def _watch(night: Night, number: int, target: Player) -> dict[str, object]:
    return {"visitors": sorted({v for v in night.visitors.get(target.number, ()) if v != number})}


def _hunt(night: Night, number: int, target: Player) -> dict[str, object]:
    return {"vampire": target.role.faction is Faction.VAMPIRES}


_LOOKS = {
    Verb.INTERROGATE: _interrogate,
    Verb.INVESTIGATE: _investigate,
    Verb.CONSULT: _consult,
    Verb.WATCH: _watch,
    Verb.HUNT: _hunt,
}


def _spy(night: Night) -> None:
    state = night.state
    spies = [
        p.number for p in state.with_role("Spy") if p.number != state.prisoner and p.number not in night.blocked_by
    ]
    if spies:
        players = state.players
        visited = sorted({target for who, target, _ in night.visits if players[who].role.faction is Faction.MAFIA})
        for spy in spies:
            state.tell_one(spy, "result", verb="spy", target=None, visits=visited)
