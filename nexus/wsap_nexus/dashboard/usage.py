"""Usage of language models: in the last day, and in each session."""

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
"""Most runs of the last day that are added up; `partial` says that there are more."""


def usage_last_day(nexus: Nexus, tx: Transaction) -> dict[str, Any]:
    """Return the usage in runs of the last 24 hours, running ones included."""
    since = (datetime.fromtimestamp(tx.now, UTC) - timedelta(days=1)).isoformat()
    query = select(_RUN.c.id, _RUN.c.summary).where(_RUN.c.created >= since)
    rows = tx.connection.execute(query.order_by(_RUN.c.created.desc()).limit(_MOST_RUNS)).all()
    total = NO_USAGE
    for row in rows:
        total += _usage(nexus, row.id, row.summary)
    return {**asdict(total), "partial": len(rows) == _MOST_RUNS}


def usage_by_session(nexus: Nexus, tx: Transaction, sessions: Sequence[SessionRecord]) -> dict[str, Any]:
    """Return session -> usage in its run; sessions without model calls are left out."""
    wanted = [s.run_id for s in sessions]
    rows = tx.connection.execute(select(_RUN.c.id, _RUN.c.summary).where(_RUN.c.id.in_(wanted)))
    by_run = {row.id: _usage(nexus, row.id, row.summary) for row in rows}
    return {s.id: asdict(by_run[s.run_id]) for s in sessions if s.run_id in by_run and by_run[s.run_id].calls}


def _usage(nexus: Nexus, run_id: str, summary: Any) -> Usage:
    run = nexus.playing(run_id)
    if run is not None:
        return spending_so_far(run).usage
    return spending_of(summary).usage if isinstance(summary, dict) else NO_USAGE
