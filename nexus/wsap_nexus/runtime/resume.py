"""A recorded run, made ready to be gone on with."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from wsap_core.decisions import DecisionInfo
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_core.wire import Codec
from wsap_nexus.runtime.minds import Beginning
from wsap_nexus.runtime.plan import RunPlan
from wsap_nexus.runtime.recorder import LoggedStep, read_decision, read_seats, read_snapshot, read_step
from wsap_nexus.runtime.run import Past
from wsap_nexus.runtime.tally import SeatTally
from wsap_nexus.storage.records import EventRecord
from wsap_nexus.storage.repository import Repository

ASKED = ("call", "model", "refusal", "failure", "tool", "tools")
"""Kinds of events about what agents asked of models and tools."""


def read_past(
    repository: Repository,
    run_id: str,
    plan: RunPlan,
    spec: AdapterSpec,
    agents: dict[str, AgentSpec],
    codec: Codec,
) -> Past:
    """Return what a run has behind it: totals of every step, and how to get back to where it stopped.

    If the game and every agent can be saved, that is the last recorded state and the steps after
    it; otherwise it is every step from the start.

    Raises:
        WireError: an event is damaged.
    """
    past = Past(tallies={s.name: SeatTally(s.name, s.agent) for s in plan.seats})
    snapshot = repository.last_event(run_id, "snapshot") if _can_restore(spec, agents) else None
    history: dict[str, deque[LoggedStep]] = {s.name: deque() for s in plan.seats}
    for event in repository.read_events(run_id, kinds=("episode", "step", "decision", "run")):
        if event.kind == "run":
            past.seconds += float(event.data.get("seconds", 0.0))
        elif event.kind == "decision":
            _amend(event, past, history)
        elif event.kind == "episode":
            past.last_episode = event.episode
            for tally in past.tallies.values():
                tally.begin_episode(event.episode, int(event.data["seed"]))
        else:
            step = _count(event, past, codec)
            if snapshot is None or event.seq > snapshot.seq:
                history[step.seat].append(step)
    past.history = history
    past.lessons = read_lessons(repository, run_id)
    past.minds = read_minds(repository, run_id)
    past.calls = read_call_events(repository, run_id, from_seq=0 if snapshot is None else snapshot.seq)
    if snapshot is not None:
        past.world, past.agents = read_snapshot(snapshot.body)
        past.seats = read_seats(snapshot.body)
        past.first_episode = snapshot.episode
    return past


def read_call_events(repository: Repository, run_id: str, *, from_seq: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Return the recorded calls to models, by seat, oldest first: what was bought once is not bought again."""
    calls: dict[str, list[dict[str, Any]]] = {}
    # What tools there are is said once in a run, and holds for all of it.
    for event in repository.read_events(run_id, to_seq=from_seq, kinds=("tools",)):
        calls.setdefault(event.seat or "", []).append(event.data)
    for event in repository.read_events(run_id, from_seq=from_seq, kinds=ASKED):
        calls.setdefault(event.seat or "", []).append(event.data)
    return calls


def read_lessons(repository: Repository, run_id: str) -> dict[str, dict[int, tuple[str, ...]]]:
    """Return what agents learned in a run, by seat and the number of the decision (from 0) after which they did."""
    found: dict[str, dict[int, tuple[str, ...]]] = {}
    for event in repository.read_events(run_id, kinds=("lessons",)):
        lines = tuple(str(line) for line in event.data.get("lessons", ()))
        found.setdefault(event.seat or "", {})[event.step or 0] = lines
    return found


def read_minds(repository: Repository, run_id: str) -> dict[str, Beginning]:
    """Return what agents' minds were when a run began, by seat.

    Raises:
        WireError: an event is damaged.
    """
    events = repository.read_events(run_id, kinds=("mind",))
    return {event.seat or "": Beginning.from_json(event.data) for event in events}


def _can_restore(spec: AdapterSpec, agents: dict[str, AgentSpec]) -> bool:
    return "snapshot" in spec.abilities and all("snapshot" in a.abilities for a in agents.values())


def _count(event: EventRecord, past: Past, codec: Codec) -> LoggedStep:
    step = read_step(event.seq, event.episode, event.step or 0, event.body, codec)
    info: DecisionInfo | None = step.info
    past.tallies[step.seat].add(step.line, step.result, info)
    return step


def _amend(event: EventRecord, past: Past, history: dict[str, deque[LoggedStep]]) -> None:
    """Take in what a seat's last decision has come to take since its step was recorded."""
    seat, info = event.seat or "", read_decision(event.body)
    if info is not None and seat in past.tallies:
        past.tallies[seat].amend(info.usage)
        if history[seat]:
            history[seat][-1] = replace(history[seat][-1], info=info)
