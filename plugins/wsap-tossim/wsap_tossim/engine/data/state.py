"""The state of a game: players and log."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_tossim.engine.data.events import HIDDEN, bits
from wsap_tossim.engine.data.model import Event, Faction, Phase, Role, Verb
from wsap_tossim.engine.data.rules import RuleSet

__all__ = ["Player", "State", "without"]

_new = tuple.__new__  # three times as fast as the constructor of the named tuple


@dataclass(slots=True, eq=False)
class Player:
    """One player's state. Numbers are seats, from 0, independent of roles."""

    number: int
    role: Role
    first_role: Role = field(init=False)
    uses: dict[Verb, int] = field(init=False)
    """Remaining uses of each limited verb."""
    alive: bool = True
    death_day: int = 0
    known_role: str | None = None
    """The announced role of a dead player, possibly a disguise; None if hidden."""
    last_will_shown: str | None = None
    """The revealed will of a dead player, if any."""
    will: str = ""
    note: str = ""
    """Its death note."""
    notebook: str = ""
    framed: bool = False
    doused: bool = False
    blackmailed: bool = False
    """Today."""
    disguised_as: Role | None = None
    guilt: bool = False
    """Whether a Vigilante shot Town and dies in the next night."""
    haunts: int = 0
    """Of a Jester lynched today: mask of the players that it may haunt tonight."""
    hit: bool = False
    """Whether a Witch has lost its defense."""
    jail_forfeited: bool = False
    """Whether a Jailor has executed Town."""
    revealed: bool = False
    """Whether a Mayor has revealed."""
    converted_on: int = 0
    """The day on which a Vampire was bitten; 0 for one from the start."""
    target: int | None = None
    """The target of an Executioner."""
    won: bool = False
    """Whether a Jester, or an Executioner's target, was lynched."""

    def __post_init__(self) -> None:
        self.first_role = self.role
        self.become(self.role)

    @property
    def mask(self) -> int:
        """The bit of this player."""
        return 1 << self.number

    def become(self, role: Role) -> None:
        """Take another role, with all its uses."""
        self.role = role
        self.uses = dict(role.uses or {})


class State:
    """The complete state of a game, and its log."""

    def __init__(self, rules: RuleSet, roles: list[Role], seed: int) -> None:
        self.rules = rules
        self.players = [Player(i, role) for i, role in enumerate(roles)]
        self.seed = seed
        self.public = random.Random(f"{seed}:public")  # play, not secrets
        """For public random draws; hidden ones use `lot`."""
        self.everyone = (1 << len(roles)) - 1
        self.day = 1
        self.phase = Phase.DISCUSSION
        self._log: list[Event] = []
        self._told: list[tuple[int, Phase, str, int, Mapping[str, Any]]] = []
        """Events since the last read of the log, without numbers."""
        self.last_death_day = 0
        """The last day with a death or conversion, its night included; 0 before the first."""
        self.prisoner: int | None = None
        """Of tonight."""
        self.seances: dict[int, int] = {}
        """Dead Medium -> its seance partner tonight."""
        self.last_bite_day = 0
        """The day of the last conversion by Vampires, who rest in the next night."""
        self._others: dict[int, tuple[int, ...]] = {}
        self._by_role: dict[str, list[Player]] = {}
        self._by_faction: dict[Faction, list[Player]] = {}
        self._alone = [{"player": number} for number in range(len(roles))]

    @property
    def log(self) -> list[Event]:
        """All events, oldest first; reading it adds the pending ones."""
        if self._told:
            self._log.extend([_new(Event, (number, *told)) for number, told in enumerate(self._told, len(self._log))])
            self._told.clear()
        return self._log

    @property
    def told(self) -> int:
        """Number of events."""
        return len(self._log) + len(self._told)

    def tell(self, kind: str, known_by: int = HIDDEN, **data: Any) -> None:
        """Add an event to the log."""
        self._told.append((self.day, self.phase, kind, known_by, data))

    def tell_one(self, player: int, kind: str, **data: Any) -> None:
        """Add an event that one player may know; `player` is part of its data."""
        self._told.append((self.day, self.phase, kind, 1 << player, {"player": player, **data}))

    def tell_silent(self, player: int) -> None:
        """Add a `silent` event, by far the most frequent one."""
        self._told.append((self.day, self.phase, "silent", self.everyone, self._alone[player]))

    def lot(self, name: str) -> float:
        """Return a random number in [0, 1) that depends only on the seed and the name.

        Each hidden draw has its own name, so that none reveals whether another took place.
        """
        return random.Random(f"{self.seed}:{name}:{self.day}:{self.phase}").random()  # play, not secrets

    def others(self, player: int = -1) -> tuple[int, ...]:
        """Return the living by number, without one player if given."""
        known = self._others.get(player)
        if known is None:
            living = tuple([p.number for p in self.players if p.alive])
            known = without(living, player)
            self._others[player] = known
        return known

    def set_alive(self, player: int, alive: bool) -> None:
        """Set whether a player is alive."""
        self.players[player].alive = alive
        self._others.clear()
        self._by_role.clear()
        self._by_faction.clear()

    def change_role(self, player: int, role: Role) -> None:
        """Change a player's role, and refill its uses."""
        self.players[player].become(role)
        self._by_role.clear()
        self._by_faction.clear()

    def living(self) -> list[Player]:
        """Return the living, by number."""
        return [p for p in self.players if p.alive]

    def of_faction(self, faction: Faction) -> Sequence[Player]:
        """Return the living of a faction, by number."""
        if not self._by_faction:
            for kind in Faction:
                self._by_faction[kind] = []
            for p in self.living():
                self._by_faction[p.role.faction].append(p)
        return self._by_faction[faction]

    def with_role(self, name: str) -> Sequence[Player]:
        """Return the living with a role, by number."""
        if not self._by_role:
            for p in self.living():
                self._by_role.setdefault(p.role.name, []).append(p)
        return self._by_role.get(name, ())

    def channel(self, faction: Faction) -> int:
        """Return the mask of a faction's living members, who know each other."""
        return bits(p.number for p in self.of_faction(faction))

    def to_json(self) -> Mapping[str, Any]:
        """Return the state without the log, to compare games; JSON-ready."""
        slots: dict[str, Any] = {}
        for p in self.players:
            row = {name: getattr(p, name) for name in Player.__slots__}
            row["role"], row["first_role"] = p.role.name, p.first_role.name
            row["disguised_as"] = p.disguised_as.name if p.disguised_as else None
            row["uses"] = {verb.value: left for verb, left in p.uses.items()}
            slots[str(p.number)] = row
        return {
            "day": self.day,
            "phase": self.phase.value,
            "players": slots,
            "prisoner": self.prisoner,
            "seances": {str(medium): living for medium, living in self.seances.items()},
            "last_death_day": self.last_death_day,
            "last_bite_day": self.last_bite_day,
        }


def without(players: tuple[int, ...], player: int) -> tuple[int, ...]:
    """Return some players without one."""
    if player not in players:
        return players
    at = players.index(player)
    return players[:at] + players[at + 1 :]
