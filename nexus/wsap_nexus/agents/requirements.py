"""The requirements of meta-goals, and how they are counted from the events of the nexus.

The types of a requirement:

    survive_steps        decisions of one session (the longest in each game)
    visit_game           sessions
    earn_achievement     times of one achievement, or different achievements if none is named
    reach_skill_level    the level of one domain, from 0 to 1; a level reached earlier counts too
    complete_action      successful uses of one action
    collect_items        portable items brought out of worlds, of one category or name, or any

A requirement is met in `any` games, whose counts are added up (except sessions of `survive_steps`); in `all` games
that existed when the goal was set; or in each game of a list. With `worlds`, the count must be reached in each of that
many different games.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.protocol import SKILL_DOMAINS
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.events.agents import SkillGained
from wsap_nexus.store.events.sessions import Entered, ItemFound, Left
from wsap_nexus.store.repository import NEXUS

TYPES = ("survive_steps", "visit_game", "earn_achievement", "reach_skill_level", "complete_action", "collect_items")
KINDS = (Entered, Left, SkillGained, ItemFound)
"""The events that are counted."""
LARGEST = 1_000_000_000

Tally = dict[str, dict[str, float]]
"""Counts: game -> name -> number."""


@dataclass(frozen=True)
class Requirement:
    """A condition of a meta-goal."""

    type: str
    """One of `TYPES`."""
    what: str = ""
    """The achievement, action or domain; an item's category or name; empty for any."""
    count: float = 1
    """The number to reach; a level from 0 to 1 for `reach_skill_level`."""
    games: str | tuple[str, ...] = "any"
    """"any", "all", or the games."""
    worlds: int = 0
    """The number of different games; 0 for all that `games` names, or for any added up."""

    def check(self) -> None:
        """Raise UsageError if it can't be counted."""
        if self.type not in TYPES:
            raise UsageError(f"Unknown type of meta-goal: {self.type[:60]!r}; it must be one of: {', '.join(TYPES)}.")
        if not 0 < self.count <= LARGEST or not 0 <= self.worlds <= 1000:
            raise UsageError("A meta-goal's count must be above 0 and at most a billion; its worlds from 0 to 1000.")
        if self.type == "reach_skill_level" and (self.what not in SKILL_DOMAINS or self.count > 1):
            raise UsageError(
                f"reach_skill_level needs one of {', '.join(SKILL_DOMAINS)}, and a level above 0, at most 1."
            )
        if self.type == "complete_action" and not self.what:
            raise UsageError("complete_action needs the name of an action.")
        if isinstance(self.games, str) and self.games not in ("any", "all"):
            raise UsageError('A meta-goal\'s games must be "any", "all" or a list.')
        if isinstance(self.games, tuple) and (not self.games or len(set(self.games)) != len(self.games)):
            raise UsageError("A meta-goal's list of games must not be empty, and must name each game only once.")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        games = self.games if isinstance(self.games, str) else list(self.games)
        return {"type": self.type, "what": self.what, "count": self.count, "games": games, "worlds": self.worlds}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Requirement:
        """Return the requirement of `to_json`."""
        games = data["games"]
        return cls(**{**data, "games": games if isinstance(games, str) else tuple(games)})


def fold(requirement: Requirement, tally: Tally, event: NexusEvent) -> None:
    """Add an event to a tally if it counts for the requirement; events of the nexus' own rewards do not."""
    game = event.game or ""
    if game == NEXUS:
        return
    match requirement.type, event:
        case "survive_steps", Left():
            held = tally.setdefault(game, {})
            held["longest"] = max(held.get("longest", 0), event.steps)
        case "visit_game", Entered():
            _add(tally, game, "visits", 1)
        case "earn_achievement", Left():
            _add_done(tally, game, event, "achievement:", requirement.what)
        case "complete_action", Left():
            _add_done(tally, game, event, "action:", requirement.what)
        case "reach_skill_level", SkillGained():
            if event.domain == requirement.what:
                tally["*"] = {"level": event.level}
        case "collect_items", ItemFound():
            if requirement.what in ("", event.item.get("category"), event.item.get("name")):
                _add(tally, game, "found", 1)


def measure(requirement: Requirement, tally: Tally, games: Sequence[str]) -> tuple[float, float]:
    """Return the progress of a requirement, at most its target, and the target; `games` is the meaning of "all"."""
    values = values_of(requirement, tally)
    if requirement.type == "reach_skill_level":
        return min(values.get("*", 0.0), requirement.count), requirement.count
    named = named_games(requirement, games)
    if requirement.games == "any" and not requirement.worlds:
        together = max(values.values(), default=0.0) if requirement.type == "survive_steps" else sum(values.values())
        return min(together, requirement.count), requirement.count
    there = values if requirement.games == "any" else {game: values.get(game, 0.0) for game in named}
    need = requirement.worlds or max(1, len(named))
    return min(sum(1 for value in there.values() if value >= requirement.count), need), need


def values_of(requirement: Requirement, tally: Tally) -> dict[str, float]:
    """Return the count of a requirement in each game."""
    if requirement.type == "earn_achievement" and not requirement.what:
        return {game: float(len(held)) for game, held in tally.items()}
    return {game: float(sum(held.values())) for game, held in tally.items()}


def renamed_tally(kind: str, tally: Tally, now: Callable[[str], str]) -> Tally:
    """Return the tally of a type of requirement with the present names of games, given by `now`.

    What was counted under both names of a game is added up; of sessions the longest counts.
    """
    found: Tally = {}
    for game, counts in tally.items():
        held = found.setdefault(now(game), {})
        for name, number in counts.items():
            before = held.get(name, 0)
            held[name] = max(before, number) if kind == "survive_steps" else before + number
    return found


def named_games(requirement: Requirement, games: Sequence[str]) -> Sequence[str]:
    """Return the games that a requirement names; `games` for "any" and "all"."""
    return games if isinstance(requirement.games, str) else requirement.games


def _add(tally: Tally, game: str, what: str, times: float) -> None:
    held = tally.setdefault(game, {})
    held[what] = held.get(what, 0) + times


def _add_done(tally: Tally, game: str, event: Left, prefix: str, what: str) -> None:
    for source in sorted(event.done):
        name = source.removeprefix(prefix)
        if source.startswith(prefix) and what in ("", name):
            _add(tally, game, name, event.done[source])
