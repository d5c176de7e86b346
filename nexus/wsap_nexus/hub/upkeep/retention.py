"""When a running nexus deletes by age: never on the word of the wall clock alone.

A clock that is wrong by a year makes everything look old, and so does a pause of a summer. Therefore:

- nothing is deleted in the first minutes after a start;
- the nexus stores until when it knew the time. If the clock has moved on by more than the age limit since then, beyond
  the time for which the nexus ran, nothing is deleted until a person runs `wsap nexus prune`, or the clock is set back;
- at most a share of what could be deleted at all goes in one day.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wsap_core.errors import WsapError
from wsap_core.protocol.lines import plural
from wsap_core.seams.clock import Clock
from wsap_nexus.hub.context import LiveState
from wsap_nexus.store.events.nexus import PruneFailed, PruneHeld
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.store.tables import CLOCK, PRUNED
from wsap_nexus.store.upkeep.prune import DAY, Pruned, day_before, prune

FIRST = 600.0
"""Seconds from the start to the first deletion."""
EVERY = DAY
"""Seconds between two deletions, also across restarts."""
LOOK = 3600.0
"""Seconds between two looks at the clock."""
LOOK_AGAIN = 60.0
"""The same while nothing is deleted because of the clock."""
SHARE = 0.1
"""The share of all recordings, and of all events, that one deletion takes at most; more if they are kept for less than
20 days, so that it keeps up."""

_MINUTE = 60.0
_STARTING = 60.0
# Seconds in which a start writes its events.

_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class Retention:
    """Deletes what is older than `keep_days` while a nexus runs; `live.undeleted` says why it does not."""

    nexus_store: NexusStore
    live: LiveState
    clock: Clock
    """For the time that passes; the nexus' store has the wall clock."""
    keep_days: float
    _known: float | None = field(default=None, init=False)
    """Until when the time was known, in seconds since 1970."""
    _since: float = field(default=0.0, init=False)
    """The moment on `clock` from which time counts as passed since then."""

    async def run(self) -> None:
        """Look at the clock every hour, and delete once a day, until cancelled."""
        await self._look()
        wait = max(FIRST, await asyncio.to_thread(self._left))
        while True:
            until = self.clock.now() + wait
            while (left := until - self.clock.now()) > 0:
                await self.clock.sleep(min(left, LOOK_AGAIN if self.live.undeleted else LOOK))
                await self._look()
            if not self.live.undeleted:
                await self._delete()
            wait = EVERY

    async def _look(self) -> None:
        try:
            why = await asyncio.to_thread(self.look)
        except WsapError as error:  # another writer, or a full disk
            _LOG.debug("The clock can't be compared with the stored time: %s", error)
            return
        if why and why != self.live.undeleted:
            _LOG.warning("%s", why)
        elif self.live.undeleted and not why:
            _LOG.warning("Old records are deleted by age again.")
        self.live.undeleted = why

    def look(self) -> str:
        """Store the time if it can be right; return why nothing may be deleted by age, or an empty text."""
        moment = self.clock.now()
        with self.nexus_store.change() as tx:
            known = _stored(tx, CLOCK)
            if known is None:
                known = _before_start(tx)
            if known != self._known:
                self._known, self._since = known, moment
            if tx.now - known - (moment - self._since) <= self.keep_days * DAY:
                self._known, self._since = trust(tx, max(known, tx.now)), moment
                return ""
            why = (
                f"Nothing is deleted by age: the clock says {_day(tx.now)}, and the nexus last knew the time on "
                f"{_day(known)}, which is longer ago than the {plural(self.keep_days, 'day')} that are kept. If the "
                "clock is wrong, set it; if it is right, delete with: wsap nexus prune (--dry-run shows what)"
            )
            if not self.live.undeleted:
                tx.note(PruneHeld(clock=_day(tx.now), known=_day(known), keep_days=self.keep_days))
            return why

    def _left(self) -> float:
        """Return the seconds until a day has passed since the last deletion."""
        with suppress(WsapError), self.nexus_store.look() as tx:
            passed = tx.now - (_stored(tx, PRUNED) or 0.0)
            return EVERY - passed if 0 <= passed < EVERY else 0.0
        return 0.0

    async def _delete(self) -> None:
        try:
            done = await asyncio.to_thread(self.delete)
        except WsapError as error:
            # A full disk or another writer: retry tomorrow, and let an event say why.
            with suppress(WsapError), self.nexus_store.change() as tx:
                tx.note(PruneFailed(error=str(error)))
            return
        if done.anything:
            _LOG.warning(
                "Deleted what is older than %s, from before %s: %s, %s of the nexus.",
                plural(self.keep_days, "day"),
                day_before(self.keep_days, self.nexus_store.wall_clock()),
                plural(done.runs, "recording"),
                plural(done.nexus_events, "event"),
            )

    def delete(self) -> Pruned:
        """Delete one day's share of what is old."""
        share = min(1.0, max(SHARE, 2 / self.keep_days))
        done = prune(self.nexus_store.database, self.keep_days, share=share, now=self.nexus_store.wall_clock())
        with self.nexus_store.change() as tx:
            tx.put_number(PRUNED, int(tx.now // _MINUTE))
        return done


def trust(tx: Transaction, now: float) -> float:
    """Store that the wall clock is right, for `Retention`; return the time as stored."""
    tx.put_number(CLOCK, int(now // _MINUTE))
    return int(now // _MINUTE) * _MINUTE


def _stored(tx: Transaction, name: str) -> float | None:
    found = tx.number(name)
    return None if found is None else found * _MINUTE


def _before_start(tx: Transaction) -> float:
    """Return the time of the newest event from before this start; the present time if there is none."""
    found = tx.time_before_start(within=_STARTING)
    return tx.now if found is None else found


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
