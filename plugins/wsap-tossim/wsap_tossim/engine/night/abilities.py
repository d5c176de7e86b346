"""Options at night and at dusk; `docs/reference/tossim-rules.md` gives the reasons."""

from __future__ import annotations

from wsap_tossim.engine.data.model import Faction, Option, Verb
from wsap_tossim.engine.data.state import Player, State
from wsap_tossim.engine.roles.listed import ROLES

__all__ = ["can_use", "dusk_options", "forced_verb", "hunting_night", "is_biter", "night_options"]

_NONE: tuple[Option, ...] = ()
_ALONE = frozenset({Verb.ALERT, Verb.HEAL_SELF, Verb.IGNITE, Verb.VEST})
"""Verbs without a target."""
_AT_TIMES = frozenset({Verb.BITE, Verb.EXECUTE, Verb.HAUNT, Verb.MAUL, Verb.SHOOT})
"""Verbs that are not available every night."""
_OF_THEIR_OWN = frozenset({Verb.CONTROL, Verb.EXECUTE, Verb.HEAL, Verb.RAISE, Verb.REMEMBER, Verb.TRANSPORT})
"""Verbs with other targets than all other living players."""
_TEAMS = frozenset({Faction.MAFIA, Faction.VAMPIRES})
"""Factions that act together, at night only on other factions."""
_UNFORCED = _ALONE | {Verb.CONTROL, Verb.EXECUTE, Verb.HAUNT, Verb.RAISE, Verb.REMEMBER, Verb.TRANSPORT}
"""Verbs that the Witch can't force."""


def night_options(state: State, player: Player) -> tuple[Option, ...]:
    """Return a player's options tonight besides waiting; none for most of the dead and for the prisoner."""
    if not player.alive:
        return _haunting(state, player) if player.haunts else _NONE
    if player.number == state.prisoner or not player.role.verbs:
        return _NONE
    found = []
    for verb in player.role.verbs:
        if can_use(state, player, verb):
            slots = _slots(state, player, verb)
            if all(slots):
                found.append(Option(verb, slots, verb is Verb.FORGE))
    return tuple(found)


def dusk_options(state: State, player: Player) -> tuple[Option, ...]:
    """Return a player's options at dusk besides waiting: of the Jailor and of a dead Medium."""
    name = player.role.name
    if name == "Jailor" and player.alive:
        others = state.others(player.number)
        return (Option(Verb.JAIL, (others,)),) if others else _NONE
    if name == "Medium" and not player.alive and player.uses.get(Verb.SEANCE, 0) > 0:
        living = state.others()
        return (Option(Verb.SEANCE, (living,)),) if living else _NONE
    return _NONE


def can_use(state: State, player: Player, verb: Verb) -> bool:
    """Return whether a living player's ability is usable tonight on any target."""
    if player.uses.get(verb, 1) <= 0 or player.guilt:
        return False
    if verb not in _AT_TIMES:
        return True
    if verb is Verb.SHOOT:
        return state.day > 1
    if verb is Verb.MAUL:
        return hunting_night(state)
    if verb is Verb.BITE:
        rests = state.last_bite_day > 0 and state.day == state.last_bite_day + 1
        return not rests and is_biter(state, player)
    if verb is Verb.EXECUTE:
        return state.prisoner is not None and state.day > 1 and not player.jail_forfeited
    return verb is not Verb.HAUNT


def forced_verb(state: State, player: Player) -> Verb | None:
    """Return the verb that the Witch can force on a player tonight, if any."""
    for verb in player.role.verbs:
        if verb not in _UNFORCED and can_use(state, player, verb):
            return verb
    return None


def hunting_night(state: State) -> bool:
    """Return whether the Werewolf hunts tonight."""
    return state.day % 2 == 0


def is_biter(state: State, player: Player) -> bool:
    """Return whether a player is the biting Vampire: the youngest that is not in jail."""
    age = (player.converted_on, player.number)
    return not any(
        other.number != state.prisoner and (other.converted_on, other.number) > age
        for other in state.of_faction(Faction.VAMPIRES)
    )


def _haunting(state: State, player: Player) -> tuple[Option, ...]:
    whom = tuple(p.number for p in state.players if p.alive and player.haunts >> p.number & 1)
    if not whom or player.uses.get(Verb.HAUNT, 0) <= 0:
        return _NONE
    return (Option(Verb.HAUNT, (whom,)),)


def _slots(state: State, player: Player, verb: Verb) -> tuple[tuple[int, ...], ...]:
    """Return the possible targets of each slot."""
    if verb in _ALONE:
        return ()
    me = player.number
    if player.role.faction in _TEAMS:
        own = tuple([p.number for p in state.of_faction(player.role.faction)])
        others = tuple([number for number in state.others() if number not in own])
        return (own, others) if verb is Verb.DISGUISE else (others,)
    if verb not in _OF_THEIR_OWN:
        return (state.others(me),)
    if verb is Verb.HEAL:
        return (tuple([number for number in state.others(me) if not state.players[number].revealed]),)
    if verb is Verb.TRANSPORT:
        living = state.others()
        return (living, living)
    if verb is Verb.CONTROL:
        return (state.others(me), state.others())
    if verb is Verb.EXECUTE:
        return ((state.prisoner,),) if state.prisoner is not None else ((),)
    return (_graves(state, town=verb is Verb.RAISE),)


def _graves(state: State, *, town: bool) -> tuple[int, ...]:
    """Return the dead that can be raised or remembered, judged by public knowledge."""
    dead = [p for p in state.players if not p.alive]
    if not state.rules.roles_on_death:
        return tuple(p.number for p in dead)
    return tuple(p.number for p in dead if p.known_role is not None and _fits(p.known_role, town=town))


def _fits(name: str, *, town: bool) -> bool:
    role = ROLES[name]
    return role.faction is Faction.TOWN if town else not role.unique
