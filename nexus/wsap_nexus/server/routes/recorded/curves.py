"""The route of a run's curves: the reward so far, and what an agent needs to live, over all steps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from wsap_nexus.http.access.callers import Admin
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.bodies import watched
from wsap_nexus.server.deps import RunId, replies
from wsap_nexus.server.routes.recorded.runs import indexes_of
from wsap_nexus.server.serializers import json_response, shortened
from wsap_nexus.store.records import EventRecord
from wsap_nexus.store.repository import Repository

# Any, in this module: JSON.

router = APIRouter(prefix="/runs", tags=["runs"])

MOST_STEPS = 20_000
"""Steps of a run of which curves are drawn, at most: each is read for them."""
MOST_SEATS = 4
"""Seats whose rewards are drawn, at most."""
POINTS = 600
"""Points of a curve, at most."""
_MOST = 1e15
# Larger values are no rewards and no meters.
METERS = ("health", "food", "drink", "energy")
"""The values of a status that are drawn as curves, if they are numbers."""


@router.get("/{run_id}/curve", responses=replies(watched.CurvesOfRun))
async def curve(
    nexus: Hub, request: Request, run_id: RunId, by: Admin, points: Annotated[int, Query(ge=2, le=2000)] = POINTS
) -> Response:
    """The reward so far over all steps, and with one seat its health, food, drink and energy if it has such.

    Each curve has the lowest and the highest value of as many parts of the run as there are points.
    """
    record = nexus.store.repository.get_run(run_id)
    index = await indexes_of(request).of(record.id)
    if index.count > MOST_STEPS:
        remark = f"It has more than {MOST_STEPS:,} steps, so no curves are drawn."
        return json_response({"curves": [], "steps": index.count, "remark": remark})
    found = await asyncio.to_thread(_read, nexus.store.repository, record.id, index.count, points)
    return json_response({"curves": found.drawn(), "steps": index.count, "remark": ""})


def _read(repository: Repository, run_id: str, count: int, points: int) -> Curves:
    curves = Curves(count, points)
    for position, event in enumerate(repository.read_events(run_id, kinds=("step",))):
        if position >= count:
            break  # it is being played
        curves.add(position, event)
    return curves


def _number(data: Any, *path: str) -> float | None:
    """Return a number in recorded data, which another program may have written; None if there is none of any use."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    number = isinstance(data, int | float) and not isinstance(data, bool) and abs(data) <= _MOST
    return float(data) if number else None


class Curves:
    """Gathers the curves of a number of steps, in at most `points` parts of equal length."""

    def __init__(self, count: int, points: int = POINTS) -> None:
        self._count = max(1, count)
        self._parts = min(points, self._count)
        self._rewards: dict[str, float] = {}
        self._meters: dict[str, None] = {}
        self._seen: dict[str, list[tuple[float, float] | None]] = {}
        """Curve -> the lowest and highest value of each part; None for a part without one."""

    def add(self, position: int, event: EventRecord) -> None:
        """Add a recorded step, at its position from 0."""
        data, seat = event.data, event.seat or ""
        part = position * self._parts // self._count
        if seat in self._rewards or len(self._rewards) < MOST_SEATS:
            gained = _number(data, "step", "result", "reward") or 0.0
            self._rewards[seat] = self._rewards.get(seat, 0.0) + gained
            self._note(f"reward {seat}", part, self._rewards[seat])
        for name in METERS:
            value = _number(data, "step", "observation", "status", name)
            if value is not None:
                self._meters[name] = None
                self._note(f"meter {name}", part, value)

    def _note(self, name: str, part: int, value: float) -> None:
        parts = self._seen.setdefault(name, [None] * self._parts)
        known = parts[part]
        parts[part] = (value, value) if known is None else (min(known[0], value), max(known[1], value))

    def drawn(self) -> list[dict[str, Any]]:
        """Return the curves: the reward of each seat, then with one seat what it has of `METERS`."""
        alone = len(self._rewards) <= 1
        named = [
            (f"reward {seat}", "reward" if alone else f"reward of {seat}", "reward") for seat in sorted(self._rewards)
        ]
        if alone:
            named += [(f"meter {name}", name, "meter") for name in self._meters]
        return [self._drawn(key, name, kind) for key, name, kind in named]

    def _drawn(self, key: str, name: str, kind: str) -> dict[str, Any]:
        held = next(part for part in self._seen[key] if part is not None)
        held = (0.0, 0.0) if kind == "reward" else held
        low, high = [], []
        for part in self._seen[key]:
            held = part or (held[1], held[1])  # unchanged where it did nothing
            low.append(round(held[0], 4))
            high.append(round(held[1], 4))
        return {"name": shortened(name, 100), "kind": kind, "low": low, "high": high}
