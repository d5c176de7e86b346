"""A recorded run as a row of a list: its agents, its end, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wsap_core.errors import WireError
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.summary import CutOff, only_model
from wsap_nexus.runs.totals import summary_now
from wsap_nexus.store.records import RunRecord
from wsap_nexus.store.repository import Repository


def label_of(agent: str, config: Mapping[str, Any]) -> str:
    """Return a run's agents with their models, which the recorded label `agent` of an earlier version lacks."""
    try:
        return RunPlan.from_config(config).agent_label
    except WireError:
        return agent


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
        "agent": label_of(record.agent, record.config),
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
    told = summary.get("seats")
    if told is None and len(found) == 1:  # the form of earlier versions for a single seat
        told = [{name: summary.get(name) for name in _OF_A_SEAT} | {"seat": next(iter(found))}]
    for seat in told or ():
        known = found.get(seat["seat"], {})
        found[seat["seat"]] = {**known, **(seat if "scored" in seat else _without_score(seat, summary))}
        if playing and (episodes := seat.get("episodes")) and isinstance(episodes, list):
            last = episodes[-1]
            episodes[-1] = {**last, "outcome": "running"} if last["outcome"] == "stopped" else last
    return list(found.values())


_OF_A_SEAT = ("steps", "episodes", "reward", "score", "achievements", "decisions", "usage", "done", "trajectory_hash")


def _without_score(seat: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a seat recorded by an earlier version, whose score counts if no episode was cut off."""
    of_all = {name: value for name, value in seat.items() if name not in ("episodes", "score")}
    count, score = seat.get("episodes") or 0, seat.get("score") or {}
    if summary.get("done") and not summary.get("cut_off"):
        return {**of_all, "score": score, "scored": count, "left_out": {}}
    together = {"episodes": count, "steps": seat.get("steps"), "reward": seat.get("reward"), "score": score}
    return {**of_all, "score": {}, "scored": 0, "left_out": {"unfinished": together} if count else {}}


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
