"""What one player knows: its part of the log, and what follows from it.

Prompts, tools, scripted players and the views of a replay are all made from a `Knowledge`, which is
given nothing but the events that its player may know, so that nothing else can get into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wsap_tossim.engine.model import Event, Phase
from wsap_tossim.engine.rules import CLASSIC, RuleSet
from wsap_tossim.engine.tokens import tokens

__all__ = ["Knowledge", "Seen", "Standing", "seen_by"]


class Seen(NamedTuple):
    """An event as a player sees it: without its number in the whole log, and without who else knows it."""

    day: int
    phase: str
    """A `Phase`; what happens at night, dusk and the talk at night is all "night" to a player."""
    kind: str
    data: Mapping[str, Any]


def seen_by(player: int | None, log: Iterable[Event]) -> Iterator[Seen]:
    """Yield the events that a player may know, oldest first; for None the public ones."""
    everyone: int | None = None
    for event in log:
        if everyone is None:
            everyone = event.known_by  # the first event is known to all
        if event.known_by == everyone if player is None else event.known_by >> player & 1:
            yield as_seen(event)


def share(events: Iterable[Event], known: Mapping[int, Knowledge]) -> None:
    """Pass events to each player's knowledge, as far as the player may know them, oldest first.

    Args:
        events: what happened.
        known: player -> what it knows.
    """
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
    """The role if known for certain: one's own, a mate's, or the announced role of a dead player."""
    died: int = 0
    """The day of its death, 0 while it lives."""
    causes: Sequence[str] = ()
    will: str | None = None
    """Of the dead: the will as it was revealed; None where none was."""
    revealed: bool = False
    """Whether it is the Mayor for all to see."""


@dataclass
class Knowledge:
    """One player's projection of the log, updated event by event."""

    player: int | None
    """The player; None for public knowledge."""
    players: int = 0
    rules: RuleSet = CLASSIC
    mode: str = ""
    slots: Sequence[str] = ()
    """The role list, as all know it."""
    day: int = 1
    phase: str = Phase.DISCUSSION.value
    standing: list[Standing] = field(default_factory=list)
    role: str | None = None
    """The player's own role, now."""
    mates: dict[int, str] = field(default_factory=dict)
    """Known members of its side -> their roles."""
    target: int | None = None
    """The target of an Executioner."""
    events: list[Seen] = field(default_factory=list)
    """All of it, oldest first."""
    votes: dict[int, int] = field(default_factory=dict)
    """Standing votes for a trial."""
    accused: int | None = None
    will: str = ""
    note: str = ""
    notebook: str = ""
    jailed: bool = False
    """Whether it sits in jail tonight."""
    blackmailed: bool = False
    """Whether it may not speak today."""
    winners: Sequence[int] | None = None
    """Set when the game is over."""
    reason: str = ""
    """Why it is over."""
    summaries: dict[int, str] = field(default_factory=dict)
    """Summaries of past days; cached here, because they no longer change."""

    def take(self, event: Seen) -> None:
        """Take in the next event."""
        self.events.append(event)
        self.day = event.day
        handler = getattr(self, f"_on_{event.kind}", None)
        if handler is not None:
            handler(event.data)

    def take_all(self, events: Iterable[Seen]) -> Knowledge:
        """Take in events, oldest first, and return this."""
        for event in events:
            self.take(event)
        return self

    @property
    def by_night(self) -> bool:
        """Whether it is night, or dusk, which players see as night."""
        return self.phase in (Phase.NIGHT, Phase.DUSK, Phase.TALK_AT_NIGHT)

    @property
    def alive(self) -> bool:
        """Whether the player itself lives."""
        return self.player is not None and self.standing[self.player].alive

    def living(self) -> list[int]:
        """Return the living players, by number."""
        return [s.number for s in self.standing if s.alive]

    def of_kind(self, *kinds: str, day: int | None = None) -> list[Seen]:
        """Return the events of some kinds, of one day or of all."""
        return [e for e in self.events if e.kind in kinds and (day is None or e.day == day)]

    @property
    def tokens_left(self) -> int | None:
        """How many tokens the player may still say and whisper today; None where there is no limit."""
        most = self.rules.tokens_a_day
        if not most:
            return None
        own = [e for e in self.of_kind("speech", "whisper", day=self.day) if e.data["player"] == self.player]
        return max(0, most - sum(tokens(str(e.data["text"])) for e in own))

    # --- what each kind of event means -------------------------------------------------------

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
            self.mates[number] = role  # those who aren't one's mates, now at least, change unseen

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
