"""The knowledge of one player: its part of the log, and what follows from it.

Prompts, tools, scripted players and replay views use only a `Knowledge`, which gets only the events that its player may
know, so they can't leak anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wsap_tossim.engine.data.model import Event, Phase
from wsap_tossim.engine.data.rules import CLASSIC, RuleSet
from wsap_tossim.engine.data.tokens import tokens

__all__ = ["Knowledge", "Seen", "Standing", "seen_by"]


class Seen(NamedTuple):
    """An event as a player sees it: without its number in the log and its audience."""

    day: int
    phase: str
    """A `Phase`; to players, dusk and the talk at night are "night" too."""
    kind: str
    data: Mapping[str, Any]


def seen_by(player: int | None, log: Iterable[Event]) -> Iterator[Seen]:
    """Yield the events that a player may know, oldest first; the public ones for None."""
    everyone: int | None = None
    for event in log:
        if everyone is None:
            everyone = event.known_by  # everybody knows the first event
        if event.known_by == everyone if player is None else event.known_by >> player & 1:
            yield as_seen(event)


def share(events: Iterable[Event], known: Mapping[int, Knowledge]) -> None:
    """Add events, oldest first, to the knowledge of each player that may know them."""
    for event in events:
        if mask := event.known_by:
            seen = as_seen(event)
            for player, knowledge in known.items():
                if mask >> player & 1:
                    knowledge.take(seen)


def as_seen(event: Event) -> Seen:
    """Return an event as its audience sees it."""
    phase = event.phase
    at_night = phase is Phase.NIGHT or phase is Phase.DUSK or phase is Phase.TALK_AT_NIGHT
    return Seen(event.day, "night" if at_night else str(phase), event.kind, event.data)


@dataclass
class Standing:
    """The public and private facts known about one player."""

    number: int
    alive: bool = True
    role: str | None = None
    """The role if certain: one's own, a mate's, or the announced role of a dead player."""
    died: int = 0
    """Day of its death, 0 while alive."""
    causes: Sequence[str] = ()
    will: str | None = None
    """The revealed will of a dead player, if any."""
    revealed: bool = False
    """Whether it is publicly known as the Mayor."""


@dataclass
class Knowledge:
    """One player's projection of the log, updated event by event."""

    player: int | None
    """The player; None for public knowledge."""
    players: int = 0
    rules: RuleSet = CLASSIC
    mode: str = ""
    slots: Sequence[str] = ()
    """The public role list."""
    day: int = 1
    phase: str = Phase.DISCUSSION.value
    standing: list[Standing] = field(default_factory=list)
    role: str | None = None
    """The player's current role."""
    mates: dict[int, str] = field(default_factory=dict)
    """Known members of its side -> their roles."""
    target: int | None = None
    """The target of an Executioner."""
    events: list[Seen] = field(default_factory=list)
    """All known events, oldest first."""
    votes: dict[int, int] = field(default_factory=dict)
    """Standing votes for a trial."""
    accused: int | None = None
    will: str = ""
    note: str = ""
    notebook: str = ""
    jailed: bool = False
    """Whether it is in jail tonight."""
    blackmailed: bool = False
    """Whether it may not speak today."""
    winners: Sequence[int] | None = None
    """Set at the end of the game."""
    reason: str = ""
    """Why the game is over."""
    summaries: dict[int, str] = field(default_factory=dict)
    """Cached summaries of past days."""

    def take(self, event: Seen) -> None:
        """Add the next event."""
        self.events.append(event)
        self.day = event.day
        handler = getattr(self, f"_on_{event.kind}", None)
        if handler is not None:
            handler(event.data)

    def take_all(self, events: Iterable[Seen]) -> Knowledge:
        """Add events, oldest first, and return self."""
        for event in events:
            self.take(event)
        return self

    @property
    def by_night(self) -> bool:
        """Whether it is night, or dusk, which is night to players."""
        return self.phase in (Phase.NIGHT, Phase.DUSK, Phase.TALK_AT_NIGHT)

    @property
    def alive(self) -> bool:
        """Whether the player is alive."""
        return self.player is not None and self.standing[self.player].alive

    def living(self) -> list[int]:
        """Return the living players, by number."""
        return [s.number for s in self.standing if s.alive]

    def of_kind(self, *kinds: str, day: int | None = None) -> list[Seen]:
        """Return the events of some kinds, of one day or all days."""
        return [e for e in self.events if e.kind in kinds and (day is None or e.day == day)]

    @property
    def tokens_left(self) -> int | None:
        """Tokens that the player may still say and whisper today; None without a limit."""
        most = self.rules.tokens_a_day
        if not most:
            return None
        own = [e for e in self.of_kind("speech", "whisper", day=self.day) if e.data["player"] == self.player]
        return max(0, most - sum(tokens(str(e.data["text"])) for e in own))

    # --- handlers of events ------------------------------------------------------------------

    def _on_begins(self, data: Mapping[str, Any]) -> None:
        self.players = data["players"]
        self.rules = RuleSet.from_json(data["rules"])
        self.mode = data["mode"]
        self.slots = data["slots"]
        self.standing = [Standing(n) for n in range(self.players)]

    def _on_role(self, data: Mapping[str, Any]) -> None:
        if data["player"] != self.player:
            return
        self.role = data["role"]
        self.standing[data["player"]].role = data["role"]
        for number, role in (data.get("mates") or {}).items():
            self.mates[int(number)] = role
            self.standing[int(number)].role = role
        if data.get("target") is not None:
            self.target = data["target"]

    def _on_becomes(self, data: Mapping[str, Any]) -> None:
        number, role = data["player"], data["role"]
        self.standing[number].role = role
        if number == self.player:
            self.role = role
            self.target = None
        else:
            self.mates[number] = role  # only the changes of mates are visible

    def _on_phase(self, data: Mapping[str, Any]) -> None:
        self.phase = data["name"]
        if self.phase == Phase.DISCUSSION:
            self.jailed = False
        elif self.phase == Phase.DUSK:
            self.blackmailed = False
        if self.phase in (Phase.NOMINATION, Phase.DUSK):
            self.votes.clear()
            self.accused = None

    def _on_vote(self, data: Mapping[str, Any]) -> None:
        self.votes[data["player"]] = data["target"]

    def _on_unvote(self, data: Mapping[str, Any]) -> None:
        self.votes.pop(data["player"], None)

    def _on_trial(self, data: Mapping[str, Any]) -> None:
        self.votes.clear()
        self.accused = data["player"]

    def _on_revealed(self, data: Mapping[str, Any]) -> None:
        self.standing[data["player"]].revealed = True
        self.standing[data["player"]].role = "Mayor"

    def _on_blackmailed(self, data: Mapping[str, Any]) -> None:
        self.blackmailed = data["player"] == self.player

    def _on_death(self, data: Mapping[str, Any]) -> None:
        one = self.standing[data["player"]]
        one.alive = False
        one.died = self.day
        one.causes = tuple(data.get("causes") or ())
        if data.get("role") is not None:
            one.role = data["role"]

    def _on_will(self, data: Mapping[str, Any]) -> None:
        self.standing[data["player"]].will = data.get("text")

    def _on_raised(self, data: Mapping[str, Any]) -> None:
        one = self.standing[data["player"]]
        one.alive = True
        one.died = 0

    def _on_jailed(self, data: Mapping[str, Any]) -> None:
        self.jailed = data["player"] == self.player

    def _on_writes(self, data: Mapping[str, Any]) -> None:
        if data["player"] == self.player:
            setattr(self, data["what"], data["text"])

    def _on_over(self, data: Mapping[str, Any]) -> None:
        self.winners = tuple(data["winners"])
        self.reason = data["reason"]
        self.phase = Phase.OVER.value

    def _on_truth(self, data: Mapping[str, Any]) -> None:
        for one, role in zip(self.standing, data["final"], strict=True):
            one.role = role
