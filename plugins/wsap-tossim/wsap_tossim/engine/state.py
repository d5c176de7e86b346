"""The state of a game: who is who, who lives, and what has been written down."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from wsap_tossim.engine.events import HIDDEN
from wsap_tossim.engine.model import Event, Faction, Phase, Role, Verb
from wsap_tossim.engine.rules import RuleSet

__all__ = ["Player", "State"]

_new = tuple.__new__  # what a named tuple does itself, in a third of the time


class Player:
    """One player's state. Numbers are seats, from 0, and say nothing about roles."""

    __slots__ = (
        "alive",
        "blackmailed",
        "clean_will",
        "converted_on",
        "death_day",
        "disguised_as",
        "doused",
        "first_role",
        "framed",
        "guilt",
        "haunts",
        "hit",
        "jail_forfeited",
        "known_role",
        "last_will_shown",
        "note",
        "notebook",
        "number",
        "revealed",
        "role",
        "target",
        "uses",
        "will",
        "won",
    )

    def __init__(self, number: int, role: Role) -> None:
        self.number = number
        self.first_role = role
        self.role = role
        self.uses: dict[Verb, int] = dict(role.uses or {})
        """What is left of each limited verb."""
        self.alive = True
        self.death_day = 0
        self.known_role: str | None = None
        """Of the dead: the role that all were told (a disguise's included), or None if nobody was."""
        self.last_will_shown: str | None = None
        """Of the dead: the will as it was revealed; None where none was."""
        self.clean_will = False
        self.will = ""
        self.note = ""
        """The death note that it leaves."""
        self.notebook = ""
        self.framed = False
        self.doused = False
        self.blackmailed = False
        """Today."""
        self.disguised_as: Role | None = None
        self.guilt = False
        """Of a Vigilante who shot Town: dies in the coming night."""
        self.haunts = 0
        """Of a Jester who was lynched today: the mask of those whom it may haunt tonight."""
        self.hit = False
        """Of a Witch: has lost its defense."""
        self.jail_forfeited = False
        """Of a Jailor: has executed Town."""
        self.revealed = False
        """Of a Mayor."""
        self.converted_on = 0
        """Of a Vampire: the day on which it was bitten; 0 for one from the start. The youngest bites."""
        self.target: int | None = None
        """Of an Executioner."""
        self.won = False
        """Of a Jester: has been lynched. Of an Executioner: its target has been."""

    @property
    def mask(self) -> int:
        """The bit of this player."""
        return 1 << self.number

    def become(self, role: Role) -> None:
        """Take another role, with all its uses."""
        self.role = role
        self.uses = dict(role.uses or {})


class State:
    """Everything that what happens next depends on, and the log of what happened."""

    def __init__(self, rules: RuleSet, roles: list[Role], seed: int) -> None:
        self.rules = rules
        self.players = [Player(i, role) for i, role in enumerate(roles)]
        self.seed = seed
        self.public = random.Random(f"{seed}:public")  # play, not secrets
        """For lots that all see drawn; those that not all see are `lot`."""
        self.everyone = (1 << len(roles)) - 1
        self.day = 1
        self.phase = Phase.DISCUSSION
        self.log: list[Event] = []
        self.last_death_day = 0
        """The last day on which, or in whose night, somebody died or was converted; 0 before the first."""
        self.prisoner: int | None = None
        """Of tonight."""
        self.seances: dict[int, int] = {}
        """Dead Mediums -> whom each speaks with tonight."""
        self.last_bite_day = 0
        """The day in whose night a Vampire last converted somebody; the next night they rest."""
        self._others: dict[int, tuple[int, ...]] = {}

    def tell(self, kind: str, known_by: int = HIDDEN, **data: Any) -> None:
        """Add an event to the log."""
        log = self.log
        log.append(_new(Event, (len(log), self.day, self.phase, kind, known_by, data)))

    def tell_one(self, player: int, kind: str, **data: Any) -> None:
        """Add an event that one player may know; `player` is part of its data."""
        log = self.log
        log.append(_new(Event, (len(log), self.day, self.phase, kind, 1 << player, {"player": player, **data})))

    def lot(self, name: str) -> float:
        """Return a number from 0 to below 1, the same whenever it is asked for under this name.

        Each lot that not all see drawn has a name of its own, so that none tells whether another was drawn.
        """
        return random.Random(f"{self.seed}:{name}:{self.day}:{self.phase}").random()  # play, not secrets

    def others(self, player: int = -1) -> tuple[int, ...]:
        """Return the living without one player, or all of them, as numbers in order."""
        known = self._others.get(player)
        if known is None:
            known = tuple([p.number for p in self.players if p.alive and p.number != player])
            self._others[player] = known
        return known

    def set_alive(self, player: int, alive: bool) -> None:
        """Let a player be alive or dead from now on."""
        self.players[player].alive = alive
        self._others.clear()

    def living(self) -> list[Player]:
        """Return the living, by number."""
        return [p for p in self.players if p.alive]

    def of_faction(self, faction: Faction) -> list[Player]:
        """Return the living of a faction, by number."""
        return [p for p in self.players if p.alive and p.role.faction is faction]

    def with_role(self, name: str) -> list[Player]:
        """Return the living with a role, by number."""
        return [p for p in self.players if p.alive and p.role.name == name]

    def channel(self, faction: Faction) -> int:
        """Return the mask of the living of a faction: those who know one another."""
        mask = 0
        for p in self.players:
            if p.alive and p.role.faction is faction:
                mask |= 1 << p.number
        return mask

    def to_json(self) -> Mapping[str, Any]:
        """Return the state without the log, for comparing two games; JSON-ready."""
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
