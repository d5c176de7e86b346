"""What an adapter remembers besides the game: the body, the last step's events, the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.authoring.body import Body
from wsap_core.protocol import AvatarState, Event
from wsap_crafter.catalogue import ACHIEVEMENTS
from wsap_crafter.engine import StepReport
from wsap_crafter.ledger import Ledger
from wsap_crafter.observation import NOTHING, Happenings
from wsap_crafter.snapshot import restoring, whole

_NAMES = tuple(a.name for a in ACHIEVEMENTS)


@dataclass
class Record:
    """The adapter's own state in one episode."""

    body: Body = field(default_factory=Body)
    happenings: Happenings = NOTHING
    """What the last step brought."""
    death_cause: str = ""
    """What took the last point of health."""
    session_start: int = 0
    """The step at which the agent jacked in."""
    session_reward: float = 0.0
    session_achievements: tuple[str, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)
    """What was brought along; it outlasts the episode."""

    def after_step(self, report: StepReport, happenings: Happenings, *, dead: bool) -> None:
        """Take in what a step brought."""
        self.happenings = happenings
        self.session_reward += report.reward
        self.session_achievements += report.unlocked
        if dead:
            self._die()

    def after_sleep(self, happenings: Happenings, *, dead: bool) -> None:
        """Take in what happened to a body that its agent had left asleep."""
        self.happenings = happenings
        if dead:
            self._die()

    def _die(self) -> None:
        self.death_cause = _last_cause(self.happenings.events)
        self.body = replace(self.body, state=AvatarState.DESTROYED, deaths=self.body.deaths + 1)
        self.ledger.lose_all(self.body.avatar_id, "lost when the avatar died")

    def next_episode(self, body: Body) -> Record:
        """Return the record of the episode after this one, with the same body or with another."""
        old = self.body
        how = "the avatar was despawned" if old.despawned else "the episode ended and another world began"
        self.ledger.lose_all(old.avatar_id, f"lost when {how}")
        if body.avatar_id != old.avatar_id:
            self.ledger.new_avatar()
        return Record(body=body, ledger=self.ledger)

    def begin_session(self, step: int) -> None:
        """Start counting for an agent that jacks in at this step."""
        self.session_start, self.session_reward, self.session_achievements = step, 0.0, ()

    def session_stats(self, step: int) -> dict[str, Any]:
        """Return what came of the session, for the agent that leaves."""
        return {
            "playtime": step - self.session_start,
            "reward": round(self.session_reward, 3),
            "achievements": list(self.session_achievements),
        }


def _last_cause(events: Sequence[Event]) -> str:
    """Return the source of the last wound; events list wounds in the order they came."""
    sources = [event.source for event in events if event.type in ("damage", "death")]
    return (sources[-1] if sources else None) or "unknown"


def dump_record(record: Record) -> dict[str, Any]:
    """Return it as JSON-ready data."""
    happenings = record.happenings
    return {
        "body": record.body.to_json(),
        "events": [[e.description, e.type, e.source, e.step] for e in happenings.events],
        "damage": happenings.damage,
        "damage_from": happenings.damage_from,
        "death_cause": record.death_cause,
        "session": [record.session_start, record.session_reward, list(record.session_achievements)],
    }


def load_record(data: Any) -> Record:
    """Return the record of :func:`dump_record`.

    Raises:
        SnapshotError: the data is not that of a record.
    """
    record: Record = restoring(lambda: _load_record(data))
    return record


def _load_record(data: Any) -> Record:
    start, reward, achievements = data["session"]
    if not isinstance(reward, int | float) or any(name not in _NAMES for name in achievements):
        raise ValueError("the session's reward or achievements are not what they should be")
    events = tuple(_load_event(row) for row in data["events"])
    damage_from, cause = data["damage_from"], data["death_cause"]
    if damage_from not in (None, "zombie", "arrow") or not isinstance(cause, str):
        raise ValueError("a cause of harm is not known")
    return Record(
        Body.from_json(data["body"]),
        Happenings(events, whole(data["damage"], 0, 9), damage_from),
        cause,
        whole(start, 0, 2**63),
        float(reward),
        tuple(achievements),
    )


def _load_event(row: Any) -> Event:
    description, kind, source, step = row
    if not (isinstance(description, str) and isinstance(kind, str) and isinstance(source, str | None)):
        raise ValueError("an event is not text")
    return Event(description, kind, source, None if step is None else whole(step, 0, 2**63))
