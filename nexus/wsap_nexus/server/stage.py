"""What is on stage: the moments of a nexus, and the worlds between which the director chooses.

Moments are kept in memory for `KEPT` seconds; after a start, those are there of which the nexus' log tells.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from wsap_core.protocol import ActionResult
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.server.director import Moment, Shot, Standing, heats, next_shot, reason
from wsap_nexus.server.places import Place, places
from wsap_nexus.store.events import Names, NexusEvent, kind_of
from wsap_nexus.store.events.agents import MetaGoalReached, Talked, Whispered
from wsap_nexus.store.events.base import plain, short
from wsap_nexus.store.events.sessions import Died, Entered, Left

# Any, in this module: JSON.

KEPT = 900.0
"""Seconds for which moments are kept."""
MOST = 2000
"""Maximum number of moments kept."""
BEHIND = 120
"""Maximum seconds that the director makes up for when nobody has looked."""
WORLDS_SHOWN = 24
"""Maximum number of worlds."""
AGENTS_SHOWN = 16
"""Maximum number of agents of a world, and at home."""
MOMENTS_SHOWN = 12
"""Maximum number of moments."""
APART = 10.0
"""Seconds after which the same kind of moment of an agent is told again: hits, and things that it achieved before."""

_TOLD = (Entered, Left, Died, MetaGoalReached, Talked, Whispered)


@dataclass(frozen=True)
class _Note:
    """A moment whose words depend on how agents are called now."""

    moment: Moment
    tell: Callable[[Names], str]

    def told(self, names: Names) -> Moment:
        """Return it with its words."""
        return replace(self.moment, words=self.tell(names))


class Stage:
    """Collects moments, and says who is on stage for the owner and for everybody else."""

    def __init__(self, nexus: Nexus, *, clock: Callable[[], float] = time.time) -> None:
        self._nexus = nexus
        self._clock = clock
        self._notes: deque[_Note] = deque(maxlen=MOST)
        self._shots: dict[bool, Shot | None] = {True: None, False: None}
        self._chosen: dict[bool, float] = {}
        with nexus.nexus_store.look() as tx:
            before = tx.event_page(kinds=[kind_of(event) for event in _TOLD], limit=200)
        for event, _ in reversed(before):
            if event.time > clock() - KEPT:  # older ones are never shown
                self._heard(event)
        nexus.on_step(self._stepped)
        nexus.nexus_store.listen(self._heard)

    def seen_by(self, *, private: bool) -> dict[str, Any]:
        """Return what the stage shows now, JSON-ready; `private` is whether everything may be read."""
        now = self._clock()
        worlds = {place.id: place for place in places(self._nexus)}
        standing = {place.id: _standing(place) for place in worlds.values()}
        notes = [note for note in self._notes if note.moment.time > now - KEPT and (private or note.moment.public)]
        with self._nexus.nexus_store.look() as tx:
            home = tx.agents(place="nexus", limit=AGENTS_SHOWN)
            here = [stay.session.agent_id for place in worlds.values() for stay in place.stays]
            names = Names(tx.names_of([*here, *(note.moment.agent for note in notes)]))
        moments = [note.told(names) for note in notes]
        shot = self._shot(private, standing, moments, now)
        hot = heats(worlds, moments, now)
        shown = sorted(
            worlds.values(), key=lambda place: (place.id != (shot and shot.world), -len(place.stays), place.id)
        )
        return {
            "now": now,
            "on_stage": None if shot is None else {
                "world": shot.world,
                "since": shot.since,
                "reason": reason(shot.world, standing[shot.world], moments, now),
                "agent": _leading(worlds[shot.world], moments),
            },
            "worlds": [self._world(place, hot[place.id], names, moments) for place in shown[:WORLDS_SHOWN]],
            "more_worlds": max(0, len(shown) - WORLDS_SHOWN),
            "home": [{"id": agent.id, "name": agent.name, "state": agent.state} for agent in home],
            "moments": [_told(moment, names) for moment in list(reversed(moments))[:MOMENTS_SHOWN]],
        }  # fmt: skip

    def _shot(self, private: bool, standing: dict[str, Standing], moments: list[Moment], now: float) -> Shot | None:
        """Return what is on stage for an audience, chosen once for each second since the last time."""
        before = self._chosen.get(private, now)
        for second in range(min(BEHIND, int(now - before)), -1, -1):
            self._shots[private] = next_shot(self._shots[private], standing, moments, now - second)
        self._chosen[private] = now
        return self._shots[private]

    def _world(self, place: Place, heat: float, names: Names, moments: list[Moment]) -> dict[str, Any]:
        last = next((moment for moment in reversed(moments) if moment.world == place.id), None)
        return {
            "id": place.id,
            "game": place.game,
            "title": place.spec.display_title if place.spec is not None else plain(place.game),
            "run": place.run,
            "draws": place.draws,
            "lives": place.lives,
            "heat": round(heat, 1),
            "told": "" if last is None else last.words,
            "agents": [
                {
                    "id": stay.session.agent_id,
                    "name": names.known.get(stay.session.agent_id, stay.session.agent_id),
                    "seat": stay.seat_name,
                    "paused": stay.controls.paused,
                }
                for stay in place.stays[:AGENTS_SHOWN]
            ],
        }

    # --- what happens -------------------------------------------------------------------------------

    def _stepped(self, stay: LiveSession, step: StepTaken) -> None:
        for name in list(step.result.achievements)[:MOMENTS_SHOWN]:
            again = stay.stats.done[f"achievement:{name}"] > 1
            how = "again" if again else "for the first time"
            self._add(stay, step, "again" if again else "achievement", f", {how}: {plain(name)}")
        if death := _event_of(step.result, "death"):
            self._add(stay, step, "died", f": {death}")
        elif hit := _event_of(step.result, "damage"):
            self._add(stay, step, "hit", f": {hit}")

    def _add(self, stay: LiveSession, step: StepTaken, kind: str, words: str) -> None:
        session, now = stay.session, self._clock()
        moment = Moment(now, session.world_id, session.agent_id, kind, "", False, session.run_id, step.step)
        if kind in ("again", "hit") and self._just_told(moment):
            return
        said = short(words, 200).rstrip(".")
        self._notes.append(_Note(moment, lambda names: f"{names.who(session.agent_id)}{said}"))

    def _just_told(self, moment: Moment) -> bool:
        for note in reversed(self._notes):
            if note.moment.time < moment.time - APART:
                return False
            if (note.moment.kind, note.moment.agent) == (moment.kind, moment.agent):
                return True
        return False

    def _heard(self, event: NexusEvent) -> None:
        if isinstance(event, _TOLD) and (where := self._where(event)) is not None:
            world, run = where
            kind: str = event.kind
            if isinstance(event, Whispered):
                kind = "talked"
            elif isinstance(event, Left) and event.items:
                kind = "brought_home"
            moment = Moment(event.time, world, event.agent_id, kind, "", event.PUBLIC is not None, run)
            self._notes.append(_Note(moment, partial(_words, event, self._title(event.game))))

    def _title(self, game: str | None) -> str:
        return next((info.name for info in self._nexus.entrance.games() if info.id == game), plain(game or ""))

    def _where(self, event: NexusEvent) -> tuple[str, str] | None:
        """Return the world and the run of an event; None if it is about no world."""
        if isinstance(event, Entered | Left):
            return event.world, event.run
        stay = self._nexus.live.sessions.get(event.agent_id or "")
        session = None if stay is None else stay.session
        if isinstance(event, Died) and event.session_id is not None:
            with self._nexus.nexus_store.look() as tx:
                session = tx.session(event.session_id)
        return None if session is None else (session.world_id, session.run_id)


# --- parts ------------------------------------------------------------------------------------------


def _standing(place: Place) -> Standing:
    return Standing(place.lives, sum(not stay.controls.paused for stay in place.stays))


def _leading(place: Place, moments: Iterable[Moment]) -> str | None:
    """Return the agent that a page looks at in a world: the one of the latest moment, else the first that plays."""
    here = [stay.session.agent_id for stay in sorted(place.stays, key=lambda stay: stay.controls.paused)]
    latest = [moment.agent for moment in moments if moment.world == place.id and moment.agent in here]
    return latest[-1] if latest else here[0] if here else None


def _words(event: NexusEvent, title: str, names: Names) -> str:
    """Return an event as a sentence; of arrivals and departures it has only what everybody may read."""
    if isinstance(event, Entered):
        how = "comes back to life in" if event.respawned else "wakes up in" if event.woken else "arrives in"
        return f"{names.who(event.agent_id)} {how} {title}"
    if isinstance(event, Left):
        return f"{names.who(event.agent_id)} comes home from {title}"
    return event.sentence(names)


def _event_of(result: ActionResult, kind: str) -> str:
    """Return what a step's observation tells of an event of a kind; empty if it tells of none."""
    return next((event.description or kind for event in result.observation.recent_events if event.type == kind), "")


def _told(moment: Moment, names: Names) -> dict[str, Any]:
    told = asdict(moment) | {"name": names.known.get(moment.agent, moment.agent)}
    del told["public"]
    return told
