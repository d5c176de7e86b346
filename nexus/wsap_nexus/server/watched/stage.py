"""What is on stage: the moments of a nexus, and the worlds between which the director chooses.

Moments of steps are read from the database, those of arrivals, departures and talks from the nexus' log. So what is
shown is the same after a start.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.runs.record.moments import WEIGHTS
from wsap_nexus.server.watched.director import Moment, Shot, Standing, Watch, heats, reason, watched
from wsap_nexus.server.watched.places import Place, places
from wsap_nexus.store.events import Names, NexusEvent, kind_of
from wsap_nexus.store.events.agents import MetaGoalReached, Talked, Whispered
from wsap_nexus.store.events.base import plain, short
from wsap_nexus.store.events.sessions import Died, Entered, Left
from wsap_nexus.store.records import EVERYONE, MomentRecord

# Any, in this module: JSON.

KEPT = 900.0
"""Seconds for which moments are kept."""
MOST = 2000
"""Maximum number of moments of steps, and of those of the log."""
LATE = 1
"""Seconds that the director is behind, so that everything that happened in its second is committed."""
WORLDS_SHOWN = 24
"""Maximum number of worlds."""
AGENTS_SHOWN = 16
"""Maximum number of agents of a world, and at home."""
MOMENTS_SHOWN = 12
"""Maximum number of moments."""
APART = 10.0
"""Seconds after which the same kind of moment of an agent is told again: deaths, hits, and things achieved before."""

Language = Literal["en", "ru"]

_SELDOM_TOLD = ("died", "hit", "again")

_TOLD = (Entered, Left, Died, MetaGoalReached, Talked, Whispered)


@dataclass(frozen=True)
class _Note:
    """A moment whose words depend on the language, and on how agents are called now."""

    moment: Moment
    tell: Callable[[Names, Language], str]


class Stage:
    """Says who is on stage for the owner and for everybody else."""

    def __init__(self, nexus: Nexus, *, clock: Callable[[], float] = time.time) -> None:
        self._nexus = nexus
        self._clock = clock
        self._heard_of: deque[_Note] = deque(maxlen=MOST)
        self._steps: tuple[int, list[_Note]] = (-1, [])
        self._watches: dict[bool, tuple[dict[str, Standing], Watch | None]] = {}
        with nexus.nexus_store.look() as tx:
            before = tx.event_page(kinds=[kind_of(event) for event in _TOLD], limit=200)
        for event, _ in reversed(before):
            if event.time > clock() - KEPT:  # older ones are never shown
                self._heard(event)
        nexus.nexus_store.listen(self._heard)

    def seen_by(self, *, private: bool, language: Language = "en") -> dict[str, Any]:
        """Return what the stage shows now, JSON-ready; `private` is whether everything may be read."""
        now = self._clock()
        worlds = {place.id: place for place in places(self._nexus)}
        standing = {place.id: _standing(place) for place in worlds.values()}
        notes = self._notes(now, private=private)
        with self._nexus.nexus_store.look() as tx:
            home = tx.agents(place="nexus", limit=AGENTS_SHOWN)
            here = [stay.session.agent_id for place in worlds.values() for stay in place.stays]
            names = Names(tx.names_of([*here, *(note.moment.agent for note in notes)]))
        moments = [replace(note.moment, words=note.tell(names, language)) for note in notes]
        shot = self._shot(private, standing, moments, int(now) - LATE)
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

    def _shot(self, private: bool, standing: dict[str, Standing], moments: list[Moment], second: int) -> Shot | None:
        """Return what is on stage for an audience, as if the worlds had been as they are since the watch began."""
        worlds, before = self._watches.get(private, (standing, None))
        watch = watched(before if worlds == standing else None, standing, moments, second)
        self._watches[private] = standing, watch
        return watch.shot

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

    def _notes(self, now: float, *, private: bool) -> list[_Note]:
        """Return what an audience may know of what happened lately, oldest first.

        What an agent goes through again and again is told only now and then.
        """
        if self._steps[0] != int(now):
            self._steps = int(now), self._of_steps(now)
        both = [note for note in self._heard_of if now - KEPT < note.moment.time <= now] + self._steps[1]
        told: dict[tuple[str, str], float] = {}
        kept = []
        for note in sorted(both, key=_order):
            moment = note.moment
            if not (private or moment.public):
                continue  # before anything else: what is secret must not hide what everybody may read
            which = moment.kind, moment.agent
            if moment.kind in _SELDOM_TOLD and moment.time < told.get(which, -APART) + APART:
                continue
            told[which] = moment.time
            kept.append(note)
        return kept

    def _of_steps(self, now: float) -> list[_Note]:
        found = self._nexus.store.repository.moments_between(now - KEPT, now, limit=MOST)
        with self._nexus.nexus_store.look() as tx:
            players = tx.players({one.run_id for one in found})
        worlds = {(run, agent): world for run, those in players.items() for agent, _, world in those}
        return [
            _Note(_moment(one, worlds[one.run_id, one.agent]), partial(_words_of_step, one))
            for one in found
            if (one.run_id, one.agent) in worlds
        ]

    def _heard(self, event: NexusEvent) -> None:
        if isinstance(event, _TOLD) and (where := self._where(event)) is not None:
            world, run = where
            kind: str = event.kind
            if isinstance(event, Whispered):
                kind = "talked"
            elif isinstance(event, Left) and event.items:
                kind = "brought_home"
            public = event.PUBLIC is not None
            moment = Moment(event.time, world, event.agent_id, kind, WEIGHTS[kind], "", public, run)
            self._heard_of.append(_Note(moment, partial(_words, event, self._title(event.game))))

    def _title(self, game: str | None) -> str:
        return next((info.name for info in self._nexus.entrance.games() if info.id == game), plain(game or ""))

    def _where(self, event: NexusEvent) -> tuple[str, str] | None:
        """Return the world and the run of an event; None if it is about no world."""
        if isinstance(event, Entered | Left):
            return event.world, event.run
        if event.session_id is not None:
            with self._nexus.nexus_store.look() as tx:
                session = tx.session(event.session_id)
            return session.world_id, session.run_id
        stay = self._nexus.live.sessions.get(event.agent_id or "")
        return None if stay is None else (stay.session.world_id, stay.session.run_id)


# --- parts ------------------------------------------------------------------------------------------


def _standing(place: Place) -> Standing:
    return Standing(place.lives, sum(not stay.controls.paused for stay in place.stays))


def _leading(place: Place, moments: Iterable[Moment]) -> str | None:
    """Return the agent that a page looks at in a world: the one of the latest moment, else the first that plays."""
    here = [stay.session.agent_id for stay in sorted(place.stays, key=lambda stay: stay.controls.paused)]
    latest = [moment.agent for moment in moments if moment.world == place.id and moment.agent in here]
    return latest[-1] if latest else here[0] if here else None


def _order(note: _Note) -> tuple[float, str, str, int, str]:
    moment = note.moment
    return moment.time, moment.run, moment.agent, moment.step or 0, moment.kind


def _moment(one: MomentRecord, world: str) -> Moment:
    return Moment(one.time, world, one.agent, one.kind, one.weight, "", one.audience == EVERYONE, one.run_id, one.step)


def _words_of_step(one: MomentRecord, names: Names, language: Language) -> str:
    return f"{names.who(one.agent)}{short(one.told(language))}"


def _words(event: NexusEvent, title: str, names: Names, language: Language) -> str:
    """Return an event as a sentence; of arrivals, deaths and departures it has only what everybody may read."""
    who = names.who(str(event.agent_id))
    match event:
        case Entered():
            english, russian = (
                ("comes back to life in", "возвращается к жизни в мире") if event.respawned
                else ("wakes up in", "просыпается в мире") if event.woken
                else ("arrives in", "приходит в мир")
            )  # fmt: skip
            return f"{who} {russian if language == 'ru' else english} {title}"
        case Died():
            return f"{who}: смерть в мире {title}" if language == "ru" else f"{who} died in {title}"
        case Left():
            return f"{who} {'возвращается домой из мира' if language == 'ru' else 'comes home from'} {title}"
    return _in_russian(event, who) if language == "ru" else event.sentence(names)


def _in_russian(event: NexusEvent, who: str) -> str:
    match event:
        case MetaGoalReached():
            return f"{who} достигает своей цели: {short(event.description) or plain(event.goal)}"
        case Talked():
            return f"Сказано для {who}: {short(event.text)}. Ответ: {short(event.reply)}"
        case Whispered():
            return f"Шёпот для {who}: {short(event.text)}"
    return event.sentence()


def _told(moment: Moment, names: Names) -> dict[str, Any]:
    told = asdict(moment) | {"name": names.known.get(moment.agent, moment.agent)}
    del told["public"]
    return told
