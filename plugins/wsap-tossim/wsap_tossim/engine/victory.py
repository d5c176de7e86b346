"""The end of a game and its winners; see "How it ends" in the rules reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wsap_tossim.engine.data.model import Faction, Role, Verb
from wsap_tossim.engine.data.state import Player, State

__all__ = ["Ending", "draw", "ending", "side", "side_of"]

KILLERS_ALONE = ("Arsonist", "Werewolf", "Serial Killer")
"""Neutral roles that win when they alone are left, in their order of precedence one against one."""
ORDER_OF_TWO = (*KILLERS_ALONE, "Mafia", "Vampires")
"""Precedence of sides if two players of different sides are left."""


@dataclass(frozen=True)
class Ending:
    """How a game ended."""

    side: str | None
    """"Town", "Mafia", "Vampires" or a neutral killer's role; None for a draw."""
    winners: tuple[int, ...]
    """All winners by number, including the dead and those who win beside a side."""
    reason: str
    """A public sentence."""


def side_of(role: Role) -> str | None:
    """Return the side that a role wins with; None for roles that win beside others."""
    if role.faction is Faction.NEUTRAL:
        return role.name if role.name in KILLERS_ALONE else None
    return role.faction.value


def side(player: Player) -> str | None:
    """Return the side of a player; see `side_of`."""
    return side_of(player.role)


def ending(state: State) -> Ending | None:
    """Return the ending of the game, or None if it goes on."""
    counts: dict[str, int] = {}
    living = 0
    for player in state.players:
        if player.alive:
            living += 1
            own = side(player)
            if own is not None:
                counts[own] = counts.get(own, 0) + 1
    if len(counts) > 1:
        if state.rules.parity:
            for own, count in counts.items():
                if own != "Town" and 2 * count >= living:
                    return _won(state, own, f"{_the(own)} cannot be outvoted any more.")
        if living == 2 and len(counts) == 2:
            return _of_two(state, counts)
        return None
    if counts:
        own = next(iter(counts))
        return _won(state, own, f"{_the(own)} alone {'are' if own == 'Vampires' else 'is'} left.")
    if living:
        return _won(state, None, "Nobody is left who could rule the town.")
    return _won(state, None, "Nobody is left alive.")


def draw(state: State, reason: str) -> Ending:
    """Return the ending of a game without a winning side."""
    return _won(state, None, reason)


def _of_two(state: State, counts: Mapping[str, int]) -> Ending | None:
    """Decide between the last two players, who could play on forever; see the reference."""
    if "Town" in counts:
        townsman = next(p for p in state.players if p.alive and side(p) == "Town")
        if _dangerous(townsman):
            return None
        other = next(own for own in counts if own != "Town")
        return _won(state, other, f"The last of the Town is no match for {_the(other)[0].lower() + _the(other)[1:]}.")
    own = min(counts, key=ORDER_OF_TWO.index)
    return _won(state, own, f"{_the(own)} prevails one against one.")


def _dangerous(player: Player) -> bool:
    """Return whether a Town player can still kill or outvote a last enemy, so that play continues."""
    name = player.role.name
    if name == "Mayor":
        return True
    if name == "Jailor":
        return not player.jail_forfeited and player.uses.get(Verb.EXECUTE, 0) > 0
    if name == "Vigilante":
        return player.uses.get(Verb.SHOOT, 0) > 0
    if name == "Veteran":
        return player.uses.get(Verb.ALERT, 0) > 0
    return name == "Vampire Hunter"


def _won(state: State, own: str | None, reason: str) -> Ending:
    winners = []
    for p in state.players:
        role = p.role
        if role.name in ("Jester", "Executioner"):
            wins = p.won
        elif role.name == "Survivor":
            wins = p.alive
        elif role.name == "Witch":
            wins = p.alive and own != "Town"
        elif role.name == "Amnesiac":
            wins = False
        else:
            wins = own is not None and side(p) == own
        if wins or p.won:
            winners.append(p.number)
    return Ending(own, tuple(winners), reason)


def _the(own: str) -> str:
    return f"The {own}"
