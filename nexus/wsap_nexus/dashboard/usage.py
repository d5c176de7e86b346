"""What language models took: lately, and in each stay. Any: JSON-ready data for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.tables import METADATA
from wsap_nexus.terminal.spending import spending_of, spending_so_far

_RUN = METADATA.tables["run"]

_MOST_RUNS = 2000
"""Runs of the last day that are added up; in a nexus of a thousand agents there are more, and it says so."""


def spent_lately(nexus: Nexus, book: Transaction) -> dict[str, Any]:
    """Return what models took in runs of the last 24 hours, those being played included."""
    since = (datetime.fromtimestamp(book.now, UTC) - timedelta(days=1)).isoformat()
    query = select(_RUN.c.id, _RUN.c.summary).where(_RUN.c.created >= since)
    rows = book.connection.execute(query.order_by(_RUN.c.created.desc()).limit(_MOST_RUNS)).all()
    total = NO_USAGE
    for row in rows:
        total += _usage(nexus, row.id, row.summary)
    return {**asdict(total), "partial": len(rows) == _MOST_RUNS}


def spent_by_session(nexus: Nexus, book: Transaction, sessions: Sequence[SessionRecord]) -> dict[str, Any]:
    """Return session -> what models took in its run; sessions without any are left out."""
    wanted = [s.run_id for s in sessions]
    rows = book.connection.execute(select(_RUN.c.id, _RUN.c.summary).where(_RUN.c.id.in_(wanted)))
    by_run = {row.id: _usage(nexus, row.id, row.summary) for row in rows}
    return {s.id: asdict(by_run[s.run_id]) for s in sessions if s.run_id in by_run and by_run[s.run_id].calls}


def _usage(nexus: Nexus, run_id: str, summary: Any) -> Usage:
    run = nexus.playing(run_id)
    if run is not None:
        return spending_so_far(run).usage
    return spending_of(summary).usage if isinstance(summary, dict) else NO_USAGE
