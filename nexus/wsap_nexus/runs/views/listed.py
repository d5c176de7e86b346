"""A recorded run as a row of a list: its agents, its end, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wsap_nexus.runs.record.summary import CutOff, only_model
from wsap_nexus.runs.totals import summary_now
from wsap_nexus.store.records import RunRecord
from wsap_nexus.store.repository import Repository

STOPPED = "stopped"
"""The status of a world that lives by itself and was left at a tick, as `wsap sandbox run --ticks` leaves it."""


def row_of(repository: Repository, record: RunRecord, status: str, *, resumable: bool) -> dict[str, Any]:
    """Return a run as JSON-ready data, as `wsap runs --json` prints it.

    Args:
        status: its current status; see `wsap_nexus.cli.runs.status_of`.
        resumable: whether a person may resume it if it is not finished.
    """
    summary = summary_now(repository, record) or {}
    replay = record.config.get("replay")
    seats = _seats(record, summary, playing=status == "running")
    only = seats[0] if len(seats) == 1 else {}
    return {
        "run": record.id,
        "game": record.game,
        "agent": record.agent,
        "model": only_model(seat["model"] for seat in seats),
        "seed": record.seed,
        "step_limit": record.step_limit,
        "episode_limit": record.config.get("episodes"),
        "steps": summary.get("steps"),
        **({"ticks": (summary.get("world") or {}).get("ticks")} if record.config.get("lives") else {}),
        "episodes": summary.get("episodes"),
        "cut_off": summary.get("cut_off"),
        "reason": _reason(repository, record, status, summary),
        "reward": only.get("reward"),
        "achievements": summary.get("achievements"),
        "score": only.get("score"),
        "decisions": summary.get("decisions"),
        "usage": summary.get("usage"),
        **({"world": summary["world"]} if "world" in summary else {}),
        "seats": seats,
        "status": status,
        "resumable": resumable and status in ("interrupted", STOPPED, "failed") and not replay,
        "replay": bool(replay),
        "replays": replay if isinstance(replay, str) else None,
        "branched_from": record.config.get("branched_from"),
        "created": record.created,
        "updated": record.updated,
        "trajectory_hash": summary.get("trajectory_hash"),
    }


def _seats(record: RunRecord, summary: Mapping[str, Any], *, playing: bool) -> list[dict[str, Any]]:
    planned = record.config.get("seats")
    found = {
        str(seat["name"]): {
            "seat": seat["name"], "agent": seat.get("agent"), "model": (seat.get("options") or {}).get("model"),
            "options": seat.get("options") or {},
        }
        for seat in (planned if isinstance(planned, list) else ())
        if isinstance(seat, Mapping) and "name" in seat
    }  # fmt: skip
    for seat in summary.get("seats", ()):
        found[seat["seat"]] = {**found.get(seat["seat"], {}), **seat}
        if playing and (episodes := seat.get("episodes")) and isinstance(episodes, list):
            last = episodes[-1]
            episodes[-1] = {**last, "outcome": "running"} if last["outcome"] == "stopped" else last
    return list(found.values())


def _reason(repository: Repository, record: RunRecord, status: str, summary: Mapping[str, Any]) -> str | None:
    """Return why a run was cut off, as text; None if it is running or was played to its end."""
    if status == "running":
        return None
    if status == "finished":
        cut_off = summary.get("cut_off")
        return None if not cut_off else str(CutOff(**cut_off))
    if status not in (record.status.value, STOPPED):
        return "its process ended before the run did"
    if reason := summary.get("reason"):
        return str(reason)
    event = repository.last_event(record.id)
    error = event.data.get("error") if event is not None and event.kind == "run" else None
    return str(error).partition(": ")[2] or str(error) if error else "stopped"
