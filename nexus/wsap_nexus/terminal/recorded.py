"""A recorded run as steps in short, and any moment of it as it was."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import fields
from itertools import accumulate
from typing import Any

from wsap_core.errors import StorageError, WireError, WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol import Achievement, Action, ActionResult, Observation
from wsap_core.protocol.wire import Codec
from wsap_core.seams.agent import DecisionInfo, Usage
from wsap_core.specs import AdapterSpec, EpisodeSummary
from wsap_core.untrusted import single_line
from wsap_nexus.runs.replay_order import IN_ORDER, in_order_made
from wsap_nexus.store.records import EventRecord, RunRecord
from wsap_nexus.store.repository import Repository
from wsap_nexus.terminal.spending import Spent
from wsap_nexus.terminal.story import KEPT, Note, SeatScene, Stage, note_of, numbers


def read_notes(repository: Repository, run_id: str) -> Iterator[Note]:
    """Give the recorded steps of a run in short, in the order in which they were made, in bounded memory.

    Raises:
        WireError: an event is not what a step looks like.
    """
    counts: dict[str, int] = {}
    for event in in_order_made(repository.read_events(run_id, kinds=IN_ORDER)):
        yield _note(event, counts)


def note_of_event(event: EventRecord) -> Note:
    """Return one recorded step in short, numbered as the step itself says.

    Raises:
        WireError: the event is not what a step looks like.
    """
    return _note(event, {event.seat or "": event.step or 0})


def _note(event: EventRecord, counts: dict[str, int]) -> Note:
    data = event.data
    try:
        line, decision = data["step"], data["decision"] or {}
        seat = str(line["seat"])
        # Numbers count in the order of the log, so that they are right even where a step says nothing of its own.
        counts[seat] = counts.get(seat, 0) + 1
        result = line["result"]
        action = Action(str(line["action"]["name"]), dict(line["action"]["parameters"]), data["reasoning"])
        short = ActionResult(
            bool(result["success"]), str(result["message"]), float(result["reward"]),
            [str(name) for name in result["achievements"]], bool(result["done"]),
        )  # fmt: skip
        forced = bool(decision.get("forced", False))
        info = _info(decision) if decision else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"Event {event.seq} of run {event.run_id!r} is not a step: {error}.") from None
    return note_of(seat, event.episode, counts[seat], action, short, forced=forced, seq=event.seq, info=info)


def _info(decision: dict[str, Any]) -> DecisionInfo:
    usage = decision.get("usage") or {}
    known = {item.name: usage[item.name] for item in fields(Usage) if item.name in usage}
    return DecisionInfo(
        bool(decision.get("repaired")),
        bool(decision.get("forced")),
        Usage(**known),
        continued=bool(decision.get("continued")),
    )


class Recording:
    """A recorded run, ready to be looked at at any step. Position 0 is before the first step.

    Args:
        repository: where it is.
        run: the run.
        host: the plugins, which know the game's own kinds of observation; without the game's
            plugin what they add is not shown.
    """

    def __init__(self, repository: Repository, run: RunRecord, host: PluginHost) -> None:
        self.run = run
        self._repository = repository
        self.spec, self._codec, self.remark = _game(run, host)
        """`remark` says what can't be shown, and why; empty if all can."""
        self.notes: list[Note] = list(read_notes(repository, run.id))
        self.seats: tuple[tuple[str, str], ...] = _seats(run, self.notes)
        """(name, agent) of every seat."""
        self._by_seat: dict[str, list[int]] = {name: [] for name, _ in self.seats}
        self._rewards: dict[str, list[float]] = {name: [] for name, _ in self.seats}
        for index, note in enumerate(self.notes):
            totals = self._rewards.setdefault(note.seat, [])
            totals.append((totals[-1] if totals else 0.0) + note.reward)
            self._by_seat.setdefault(note.seat, []).append(index)
        self._spent = list(accumulate(self.notes, _spent, initial=Spent()))
        self._achieved = [i for i, note in enumerate(self.notes) if note.achievements]
        self._plans = [
            (event.seq, event.seat or "", tuple(single_line(line) for line in event.data.get("plan", ())))
            for event in repository.read_events(run.id, kinds=("plan",))
        ]
        self._first: dict[str, Observation | None] = {}

    def __len__(self) -> int:
        return len(self.notes)

    def stage(self, position: int, focus: int = 0) -> Stage:
        """Return the run as it was after so many steps, of all seats together."""
        position = max(0, min(position, len(self.notes)))
        scenes = tuple(self._scene(name, agent, position, whole=i == focus % len(self.seats))
                       for i, (name, agent) in enumerate(self.seats))  # fmt: skip
        spec = self.spec
        catalogue: tuple[Achievement, ...] = spec.achievements if spec is not None else ()
        return Stage(
            spec.display_title if spec is not None else self.run.game,
            self.run.id,
            self.run.seed,
            self.run.step_limit,
            scenes,
            focus,
            catalogue,
            self.scores(position),
            spending=self.spending(position),
        )

    def observation(self, note: Note) -> Observation:
        """Return what the seat saw after a step.

        Raises:
            WireError: what was recorded is damaged.
            StorageError: it is not there any more.
        """
        for event in self._repository.read_events(self.run.id, from_seq=note.seq, to_seq=note.seq + 1):
            return self._decode(json.loads(event.body)["step"]["observation"])
        raise StorageError(f"Event {note.seq} of run {self.run.id!r} is gone.")

    def next_achievement(self, position: int) -> int | None:
        """Return the position after the next step that unlocked something, or None."""
        return next((i + 1 for i in self._achieved if i + 1 > position), None)

    def previous_achievement(self, position: int) -> int | None:
        """Return the position after the last step before this one that unlocked something, or None."""
        return next((i + 1 for i in reversed(self._achieved) if i + 1 < position), None)

    def scores(self, position: int) -> tuple[tuple[str, float, str], ...]:
        """Return the game's metrics over the first steps; nothing where the game is not installed."""
        if self.spec is None:
            return ()
        episodes = self._episodes(position)
        try:
            return tuple((m.name, m.of(episodes), m.unit) for m in self.spec.score_metrics)
        except WsapError:
            return ()

    def spending(self, position: int) -> Spent:
        """Return what language models took over the first steps, as it was recorded with each."""
        return self._spent[max(0, min(position, len(self.notes)))]

    def _episodes(self, position: int) -> list[EpisodeSummary]:
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for note in self.notes[:position]:
            entry = found.setdefault((note.seat, note.episode), {"steps": 0, "reward": 0.0, "names": set(), "done": 0})
            entry["steps"] += 1
            entry["reward"] += note.reward
            entry["names"].update(note.achievements)
            entry["done"] = note.done
        return [
            EpisodeSummary(0, e["steps"], e["reward"], tuple(sorted(e["names"])), bool(e["done"]), seat, episode)
            for (seat, episode), e in found.items()
        ]

    def _scene(self, name: str, agent: str, position: int, *, whole: bool) -> SeatScene:
        indices = self._by_seat.get(name, [])
        count = bisect_right(indices, position - 1)
        if not count:
            first = self._first_observation(name) if whole else None
            return SeatScene(name, agent, first, maxima=numbers(first) if first is not None else {})
        notes = tuple(self.notes[i] for i in indices[max(0, count - KEPT) : count])
        last = notes[-1]
        observation = self.observation(last) if whole else None
        start = self._first_observation(name) if whole else None
        maxima = numbers(start) if start is not None else {}
        for key, value in (numbers(observation) if observation is not None else {}).items():
            maxima[key] = max(value, maxima.get(key, value))
        return SeatScene(
            name,
            agent,
            observation,
            None,
            last.number,
            last.episode,
            self._rewards[name][count - 1],
            notes,
            self._unlocked(name, last.episode, position),
            maxima,
            last.done,
            self._plan(name, last.seq),
        )

    def _plan(self, seat: str, seq: int) -> tuple[str, ...]:
        """Return what a seat's agent last said it would do, before an event."""
        said = [lines for number, who, lines in self._plans if who == seat and number < seq]
        return said[-1] if said else ()

    def _unlocked(self, seat: str, episode: int, position: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for index in self._achieved:
            note = self.notes[index]
            if index < position and note.seat == seat and note.episode == episode:
                for name in note.achievements:
                    found.setdefault(name, note.number)
        return found

    def _first_observation(self, seat: str) -> Observation | None:
        if seat not in self._first:
            events = self._repository.read_events(self.run.id, kinds=("observation",), seat=seat)
            event = next(iter(events), None)
            self._first[seat] = None if event is None else self._decode(event.data)
        return self._first[seat]

    def _decode(self, data: Any) -> Observation:
        # Any: what was recorded; decoding validates it.
        return self._codec.decode(Observation, data, where="recorded observation")


def _spent(before: Spent, note: Note) -> Spent:
    info = note.info or DecisionInfo(forced=note.forced)
    usage = before.usage + info.usage if info.usage.calls else before.usage
    decisions = before.decisions + (not info.continued)
    return Spent(usage, decisions, before.repaired + info.repaired, before.forced + info.forced)


def _game(run: RunRecord, host: PluginHost) -> tuple[AdapterSpec | None, Codec, str]:
    """Return the game's description and a codec for its types, and what can't be shown without them."""
    from wsap_core.factories import load
    from wsap_core.references import load_adapter_spec

    reference = str(run.config.get("game", run.game))
    try:
        spec = load_adapter_spec(reference, host)
        return spec, Codec([load(wire_type) for wire_type in spec.wire_types]), ""
    except WsapError as error:
        return None, Codec(), f"Shown without what the game adds: {error}"


def _seats(run: RunRecord, notes: list[Note]) -> tuple[tuple[str, str], ...]:
    planned = run.config.get("seats")
    seats: dict[str, str] = {}
    for seat in planned if isinstance(planned, list) else ():
        if isinstance(seat, dict) and "name" in seat:
            seats[str(seat["name"])] = str(seat.get("agent", run.agent))
    for note in notes:
        seats.setdefault(note.seat, run.agent)
    return tuple(seats.items()) or (("", run.agent),)
