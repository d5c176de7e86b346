"""Runs of the nexus that its process was killed in, and that nobody goes on with."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Text, cast, exists, or_, select, update

from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.store.records import RunStatus
from wsap_nexus.store.repository import NEXUS, Repository
from wsap_nexus.store.tables import METADATA

_RUN, _EVENT, _SESSION = (METADATA.tables[name] for name in ("run", "event", "session"))

# Any, in this module: JSON.


def config_of(plan: RunPlan) -> dict[str, Any]:
    """Return the configuration of a run of the nexus, by which it is known before an agent has a session in it."""
    return {**plan.to_config(), NEXUS: True}


def settle_cut_off_runs(repository: Repository) -> None:
    """Mark visits and stays that were cut off as interrupted, and delete runs that no agent came to enter.

    Runs with an open session are left as they are: the nexus goes on with them. Call it while no nexus plays.
    """
    stays = exists().where(_SESSION.c.run_id == _RUN.c.id)
    own = or_(
        _RUN.c.game == NEXUS,
        stays.where(_SESSION.c.world_id != _SESSION.c.run_id),
        cast(_RUN.c.config, Text).contains(f'"{NEXUS}":true'),
        exists().where(_EVENT.c.run_id == _RUN.c.id, _EVENT.c.kind == "start"),  # of an older version
    )
    left = _RUN.c.status == RunStatus.RUNNING.value, own, ~stays.where(_SESSION.c.closed.is_(None))
    entered = or_(_RUN.c.game == NEXUS, stays)
    with repository.database.write() as connection:
        connection.execute(update(_RUN).where(*left, entered).values(status=RunStatus.INTERRUPTED.value))
        never = connection.execute(select(_RUN.c.id).where(*left)).scalars().all()
    for run_id in never:
        repository.delete_run(run_id)
