"""Deaths and their consequences, and the set-up before the first day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wsap_tossim.engine.data.events import bits
from wsap_tossim.engine.data.model import Faction, Verb
from wsap_tossim.engine.data.state import Player, State
from wsap_tossim.engine.roles.listed import ROLES

__all__ = ["become", "die", "lynch", "new_target", "set_up", "settle"]

LYNCHING = "lynching"


def die(
    state: State,
    player: int,
    causes: Sequence[str],
    *,
    when: str = "night",
    cleaned: bool = False,
    forged: str | None = None,
    notes: Iterable[str] = (),
) -> None:
    """Let a living player die, and announce it. The consequences follow in `settle`.

    Args:
        state: the game.
        player: the victim.
        causes: of death, in words that follow "killed by".
        when: "night" or "day".
        cleaned: whether role and will are hidden.
        forged: the will that replaces its own.
        notes: the death notes found.
    """
    one = state.players[player]
    rules, everyone = state.rules, state.everyone
    state.set_alive(player, False)
    one.death_day = state.last_death_day = state.day
    shown = None if cleaned or not rules.roles_on_death else (one.disguised_as or one.role).name
    one.known_role = shown
    state.tell("death", everyone, player=player, causes=list(causes), role=shown, when=when)
    if rules.wills:
        text = None if cleaned else one.will if forged is None else forged
        one.last_will_shown = text
        state.tell("will", everyone, player=player, text=text, cleaned=cleaned)
    if rules.death_notes:
        for note in notes:
            if note:
                state.tell("note", everyone, player=player, text=note)
    one.doused = one.framed = one.blackmailed = one.guilt = False
    one.disguised_as = None


def lynch(state: State, player: int, guilty: Iterable[int] = ()) -> None:
    """Lynch a player, with all consequences; a Jester may haunt one of `guilty`."""
    one = state.players[player]
    die(state, player, [LYNCHING], when="day")
    if one.role.name == "Jester":
        one.won = True
        if state.rules.jester_haunts:
            one.haunts = bits(guilty)
            state.tell_one(player, "told", code="may_haunt")
    for other in state.with_role("Executioner"):
        if other.target == player:
            other.won = True
            state.tell_one(other.number, "told", code="target_lynched")
    settle(state, [player])


def settle(state: State, dead: Sequence[int]) -> None:
    """Change roles after deaths: Executioners, the Mafia, Vampire Hunters."""
    if dead and state.rules.executioner_turns:
        for one in state.with_role("Executioner"):
            if one.target in dead and not one.won:  # it has, if they were lynched
                become(state, one, "Jester", "target died")
    _succeed(state, any(state.players[n].role.name == "Godfather" for n in dead))
    if not state.of_faction(Faction.VAMPIRES):
        for one in state.with_role("Vampire Hunter"):
            become(state, one, "Vigilante", "last of a kind")
            one.uses[Verb.SHOOT] = state.rules.hunter_bullets


def become(state: State, one: Player, role: str, why: str) -> None:
    """Change a player's role, and reveal the player and its new mates to each other."""
    joins = one.role.faction
    state.change_role(one.number, ROLES[role])
    faction = one.role.faction
    known_by = one.mask
    mates = faction in (Faction.MAFIA, Faction.VAMPIRES)
    if mates:
        known_by |= state.channel(faction)
    state.tell("becomes", known_by, player=one.number, role=role, why=why)
    if mates and joins is not faction:
        state.tell_one(one.number, "role", role=role, mates=_mates(state, one), target=None)


def new_target(state: State, one: Player) -> int | None:
    """Draw an Executioner's target among the living Town, except Mayor and Jailor; None if there is none."""
    found = [
        p.number
        for p in state.players
        if p.alive and p.role.faction is Faction.TOWN and p.role.name not in ("Mayor", "Jailor") and p is not one
    ]
    return found[int(state.lot(f"target of {one.number}") * len(found))] if found else None


def set_up(state: State) -> None:
    """Draw the Executioners' targets, and tell each player its role."""
    for one in state.players:
        if one.role.name == "Executioner":
            one.target = new_target(state, one)
    for one in state.players:
        state.tell_one(one.number, "role", role=one.role.name, mates=_mates(state, one), target=one.target)
    for one in state.with_role("Executioner"):
        if one.target is None:
            become(state, one, "Jester", "no target")
    _succeed(state, False)


def _mates(state: State, one: Player) -> dict[str, str]:
    """Return the known mates of a player: number in digits -> role."""
    faction = one.role.faction
    if faction not in (Faction.MAFIA, Faction.VAMPIRES):
        return {}
    return {str(p.number): p.role.name for p in state.of_faction(faction) if p is not one}


def _succeed(state: State, godfather_died: bool) -> None:
    mafia = state.of_faction(Faction.MAFIA)
    if not mafia:
        return
    names = [p.role.name for p in mafia]
    if "Godfather" in names:
        return
    if "Mafioso" in names:
        if godfather_died:
            become(state, mafia[names.index("Mafioso")], "Godfather", "promotion")
    elif state.rules.promotion_of_mafia:
        become(state, mafia[int(state.lot("Mafioso") * len(mafia))], "Mafioso", "promotion")
