"""Role lists: named modes, custom lists, and dealing roles."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wsap_core.errors import ConfigError
from wsap_tossim.engine.data.model import Category, Faction, Role
from wsap_tossim.engine.roles.listed import ROLES, role_named
from wsap_tossim.engine.victory import side_of

__all__ = ["FEWEST", "MODES", "MOST", "Setup", "deal", "roles_of", "setup"]

FEWEST, MOST = 5, 15
ANY = "Any"
RANDOM: Mapping[str, Faction] = {
    "Random Town": Faction.TOWN,
    "Random Mafia": Faction.MAFIA,
    "Random Neutral": Faction.NEUTRAL,
}


@dataclass(frozen=True)
class Setup:
    """A role list, with a slot for each player."""

    name: str
    slots: tuple[str, ...]
    """Role names, categories ("Town Support"), "Random Town", "Random Mafia", "Random Neutral" or "Any"."""

    @property
    def teaching(self) -> bool:
        """Whether it has only Citizens and Mafiosi; several Mafiosi are then allowed, who kill together."""
        return set(self.slots) <= {"Citizen", "Mafioso"}


def _list(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


MODES: Mapping[str, tuple[str, ...]] = {
    "classic": _list(
        "Jailor, Investigator, Sheriff, Lookout, Doctor, Escort, Medium, Vigilante, Random Town, "
        "Godfather, Mafioso, Framer, Serial Killer, Executioner, Jester"
    ),
    "ranked": _list(
        "Jailor, Town Investigative, Town Investigative, Town Protective, Town Killing, Town Support, Random Town, "
        "Random Town, Random Town, Godfather, Mafioso, Random Mafia, Random Mafia, Neutral Killing, Neutral Evil"
    ),
    "any": (ANY,) * 15,
    "vampires": _list(
        "Jailor, Vampire Hunter, Investigator, Sheriff, Lookout, Doctor, Bodyguard, Escort, Random Town, Random Town, "
        "Random Town, Vampire, Vampire, Survivor, Jester"
    ),
    "twelve": _list(
        "Jailor, Investigator, Sheriff, Lookout, Doctor, Escort, Random Town, Godfather, Mafioso, Random Mafia, "
        "Serial Killer, Neutral Evil"
    ),
    "nine": _list("Investigator, Sheriff, Doctor, Escort, Vigilante, Random Town, Godfather, Mafioso, Neutral Evil"),
    "seven": _list("Investigator, Sheriff, Doctor, Lookout, Random Town, Godfather, Mafioso"),
    "five": _list("Sheriff, Doctor, Citizen, Citizen, Mafioso"),
    "lesson": _list("Citizen, Citizen, Citizen, Citizen, Citizen, Mafioso, Mafioso"),
}
"""The named modes. `any:9` is "all any" with nine players, `lesson:7:2` seven players with two Mafiosi."""


def setup(mode: str = "classic", roles: Sequence[str] | str | None = None) -> Setup:
    """Return a mode by name, or a custom list.

    Args:
        mode: a name in `MODES`, `any:PLAYERS`, or `lesson:PLAYERS:MAFIOSI`.
        roles: slots, as a sequence or separated by commas; the mode is then only the list's name.

    Raises:
        ConfigError: there is no such mode, or the list is not playable.
    """
    if roles:
        words = _list(roles) if isinstance(roles, str) else tuple(roles)
        slots = tuple(_slot(word, number) for number, word in enumerate(words, 1))
        found = Setup("custom" if mode == "classic" else mode, slots)
    elif mode in MODES:
        found = Setup(mode, MODES[mode])
    else:
        found = Setup(mode, _numbered(mode))
    _check(found)
    return found


def deal(chosen: Setup, seed: int) -> list[Role]:
    """Return the role of each player, shuffled over the seats.

    Roles are drawn uniformly among those that a slot allows, narrow slots first. A draw with only one side is repeated.

    Raises:
        ConfigError: no draw is playable.
    """
    rng = random.Random(f"{seed}:roles")  # play, not secrets
    for _ in range(1000):
        roles = _draw(chosen, rng)
        if roles is not None and len({side_of(r) for r in roles} - {None}) > 1:
            rng.shuffle(roles)
            return roles
    raise ConfigError(f"The role list {', '.join(chosen.slots)} leaves only one side alive, so there is no game.")


def roles_of(slots: Iterable[str]) -> list[Role]:
    """Return the roles possible in a game with this list, at the start or later."""
    found = {role.name for slot in slots for role in ((ROLES[slot],) if slot in ROLES else _pool(slot))}
    for before, after in (("Executioner", "Jester"), ("Vampire Hunter", "Vigilante")):
        found |= {after} if before in found else set()
    if any(ROLES[name].faction is Faction.MAFIA for name in found):
        found.add("Mafioso")
    return [role for role in ROLES.values() if role.name in found]


def _numbered(mode: str) -> tuple[str, ...]:
    name, _, rest = mode.partition(":")
    try:
        numbers = [int(n) for n in rest.split(":")]
    except ValueError:
        numbers = []
    if name == "any" and len(numbers) == 1 and 0 <= numbers[0] <= 1000:
        return (ANY,) * numbers[0]
    if name == "lesson" and len(numbers) == 2 and 0 <= numbers[1] <= numbers[0] <= 1000:
        players, mafiosi = numbers
        return ("Citizen",) * (players - mafiosi) + ("Mafioso",) * mafiosi
    raise ConfigError(
        f"There is no mode {mode[:60]!r}; there are: {', '.join(MODES)}, any:PLAYERS, lesson:PLAYERS:MAFIOSI."
    )


_KINDS = {known.casefold(): known for known in (ANY, *RANDOM, *(c.value for c in Category))}
"""Kinds of slots besides roles."""


def _slot(word: str, number: int) -> str:
    """Return a slot in the spelling of modes, ignoring case; `number` is from 1, for errors."""
    plain = " ".join(word.casefold().split())
    if not plain:
        raise ConfigError(f"Slot {number} of the role list is empty; leave a comma out, or put a role there.")
    if plain in _KINDS:
        return _KINDS[plain]
    if close := difflib.get_close_matches(plain[:60], list(_KINDS), n=1, cutoff=0.8):
        raise ConfigError(f"There is no role {word.strip()[:60]!r}; did you mean {_KINDS[close[0]]}?")
    return role_named(word).name


def _check(chosen: Setup) -> None:
    slots = chosen.slots
    if not FEWEST <= len(slots) <= MOST:
        raise ConfigError(f"The role list has {len(slots)} players; a game has {FEWEST} to {MOST}.")
    named = [ROLES[s] for s in slots if s in ROLES]
    if not chosen.teaching:
        for role in named:
            if role.unique and sum(r is role for r in named) > 1:
                raise ConfigError(f"The role list has more than one {role.name}, which is unique.")
    of_slots = [{side_of(r) for r in ((ROLES[slot],) if slot in ROLES else _pool(slot))} - {None} for slot in slots]
    sides = set().union(*of_slots)
    if len(sides) > 1 and sum(map(bool, of_slots)) < 2:
        raise ConfigError(
            "In this role list only one player can be on a side that can win; a game needs two, enemies of each other."
        )
    if len(sides) < 2:
        if not sides:
            raise ConfigError(
                "In this role list nobody is on a side that can win; a game needs two, enemies of each other."
            )
        raise ConfigError(f"In this role list {next(iter(sides))} has no enemy; a game needs two sides that can win.")
    if _draw(chosen, random.Random(0)) is None:  # whether it can be filled does not depend on the draw
        raise ConfigError(
            f"The role list {', '.join(slots)} asks for more unique roles than there are; leave a slot out."
        )


def _draw(chosen: Setup, rng: random.Random) -> list[Role] | None:
    taken = [ROLES[s] for s in chosen.slots if s in ROLES]
    used = {r.name for r in taken if r.unique}
    open_slots = sorted((s for s in chosen.slots if s not in ROLES), key=lambda s: len(_pool(s)))
    roles = list(taken)
    for slot in open_slots:
        pool = [r for r in _pool(slot) if r.name not in used]
        if not pool:
            return None
        role = rng.choice(pool)
        if role.unique:
            used.add(role.name)
        roles.append(role)
    return roles


_POOLS: dict[str, tuple[Role, ...]] = {}


def _pool(slot: str) -> tuple[Role, ...]:
    if slot not in _POOLS:
        drawn = [r for r in ROLES.values() if r.category is not None]
        if slot == ANY:
            found = drawn
        elif slot in RANDOM:
            faction = RANDOM[slot]
            apart = (Faction.NEUTRAL, Faction.VAMPIRES) if faction is Faction.NEUTRAL else (faction,)
            found = [r for r in drawn if r.faction in apart]
        else:
            found = [r for r in drawn if r.category == slot]
        _POOLS[slot] = tuple(found)
    return _POOLS[slot]
