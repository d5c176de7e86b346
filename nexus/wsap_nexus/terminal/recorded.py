"""A recorded run: its steps in short, and its state after any step."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from wsap_core.errors import StorageError, WireError, WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol import Achievement, Action, ActionResult, Observation
from wsap_core.protocol.wire import Codec
from wsap_core.seams.context import derive_seed
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_nexus.runs.record.logged import read_decision
from wsap_nexus.runs.record.replay_order import IN_ORDER, in_order_made
from wsap_nexus.runs.record.summary import score_so_far
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.runs.record.trajectory import TrajectoryHash
from wsap_nexus.runs.totals import Tell, TotalsIndex, silent, with_progress
from wsap_nexus.store.records import EventRecord, RunRecord, RunStatus
from wsap_nexus.store.repository import Repository
from wsap_nexus.terminal.spending import Spent, spending_of, spending_of_seats
from wsap_nexus.terminal.story import KEPT, Note, SeatScene, Stage, note_of, numbers

_KEPT_PARTS = 8
"""Maximum number of parts of a run, each between two totals, in memory."""
_WINDOW = 2_000
"""Maximum number of steps of all seats among which the last ones of each are searched."""


def note_of_event(event: EventRecord) -> Note:
    """Return one recorded step in short; WireError if the event is not a step."""
    data = event.data
    try:
        line, info = data["step"], read_decision(data["decision"])
        result = line["result"]
        action = Action(str(line["action"]["name"]), dict(line["action"]["parameters"]), data["reasoning"])
        short = ActionResult(
            bool(result["success"]), str(result["message"]), float(result["reward"]),
            [str(name) for name in result["achievements"]], bool(result["done"]),
            outcome=result.get("outcome", "done"), truncated=bool(result.get("truncated", False)),
        )  # fmt: skip
        seat, number = str(line["seat"]), (event.step or 0) + 1
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"Event {event.seq} of run {event.run_id!r} is not a step: {error}.") from None
    forced = info is not None and info.forced
    return note_of(seat, event.episode, number, action, short, forced=forced, seq=event.seq, info=info)


def last_notes(repository: Repository, run_id: str, seats: int) -> list[Note]:
    """Return the last steps of a run, `KEPT` for each seat, oldest first; WireError if an event is malformed."""
    last = repository.last_event(run_id)
    # A step comes with a `chosen` event, and sometimes an observation.
    first = 0 if last is None else max(0, last.seq - 3 * KEPT * seats)
    return [note_of_event(event) for event in repository.read_events(run_id, from_seq=first, kinds=("step",))]


class Recording:
    """A recorded run at any step, read in parts. Position 0 is before the first step.

    Args:
        host: the plugins, with the game's own types of observation; without the game's plugin, its fields are left out.
        tell: called with the progress if the run has no totals and is read completely.
    """

    def __init__(self, repository: Repository, run: RunRecord, host: PluginHost, *, tell: Tell = silent) -> None:
        self.run = run
        self._repository = repository
        self.spec, self._codec, self.remark = game_to_read(run, host)
        """`remark` says what can't be shown, and why; empty if nothing is left out."""
        self.seats: tuple[tuple[str, str], ...] = _seats(run)
        """(name, agent) of every seat."""
        self._index = TotalsIndex(repository, run.id, self._new_tallies)
        self._tell = tell
        self._parts: dict[int, tuple[dict[str, SeatTally], list[Note]]] = {}
        self._first: dict[str, Observation | None] = {}

    def __len__(self) -> int:
        return self._index.steps

    def notes(self, first: int, last: int) -> Iterator[Note]:
        """Yield the steps from `first` to `last`, counted from 1; WireError if an event is malformed."""
        first = max(1, first)
        index = self._index.before(first - 1)
        skip = first - 1 - self._index.positions[index]
        if len(self.seats) == 1:
            steps = self._index.events(index, ("step",), skip=skip)
        else:
            events = with_progress(self._index.events(index, IN_ORDER), self._repository, self.run.id, self._tell)
            steps = islice(in_order_made(events), skip, None)
        return map(note_of_event, islice(steps, max(0, last + 1 - first)))

    def _part(self, index: int) -> tuple[dict[str, SeatTally], list[Note]]:
        """Return the totals at an index, and the steps from there to the next."""
        if index not in self._parts:
            tallies = self._index.read(index).tallies
            last = next(iter(self._index.seqs[index + 1 : index + 2]), None)
            events = list(self._index.events(index, (*IN_ORDER, "decision"), last=last))
            # Model usage added to decisions later, such as for a summary by the memory.
            amended = {(e.seat, (e.step or 0) + 1): read_decision(e.data) for e in events if e.kind == "decision"}
            notes = [note_of_event(event) for event in in_order_made(e for e in events if e.kind != "decision")]
            notes = [replace(note, info=amended.get((note.seat, note.number), note.info)) for note in notes]
            for tally in tallies.values():
                tally.all_episodes()  # decoded once, for all copies
            while len(self._parts) >= _KEPT_PARTS:
                self._parts.pop(next(iter(self._parts)))
            self._parts[index] = tallies, notes
        return self._parts[index]

    def _tallies(self, position: int) -> dict[str, SeatTally]:
        self._index.complete(self._tell)
        index = self._index.before(position)
        totals, notes = self._part(index)
        tallies = {name: tally.copy() for name, tally in totals.items()}
        for note in notes[: position - self._index.positions[index]]:
            tally = tallies.setdefault(note.seat, SeatTally(note.seat, self.run.agent))
            if note.episode != tally.episode:
                for each in tallies.values():
                    each.begin_episode(note.episode, derive_seed(self.run.seed, note.episode))
            tally.count(note.reward, note.achievements, done=note.done, truncated=note.truncated, info=note.info)
        return tallies

    def _new_tallies(self) -> dict[str, SeatTally]:
        return {name: SeatTally(name, agent, hash=TrajectoryHash()) for name, agent in self.seats}

    def stage(self, position: int, focus: int = 0) -> Stage:
        """Return the run at a position, which counts the steps of all seats."""
        position = max(0, min(position, len(self)))
        tallies = self._tallies(position)
        notes = self._window(position)
        scenes = tuple(
            self._scene(tallies[name], [n for n in notes if n.seat == name][-KEPT:], whole=i == focus % len(self.seats))
            for i, (name, _) in enumerate(self.seats)
        )
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
            () if self.spec is None else score_so_far(self.spec, tallies[self.seats[focus % len(self.seats)][0]]),
            spending=spending_of_seats(list(tallies.values())),
            episodes=self.run.config.get("episodes"),
        )

    def _window(self, position: int) -> list[Note]:
        """Return the last steps of all seats before a position, which include those to show."""
        first = max(0, position - min(_WINDOW, KEPT * len(self.seats)))
        found: list[Note] = []
        for index in range(self._index.before(first), self._index.before(position) + 1):
            start = self._index.positions[index]
            found += self._part(index)[1][max(0, first - start) : position - start]
        return found

    def observation(self, note: Note) -> Observation:
        """Return the seat's observation after a step.

        Raises:
            WireError: the event is damaged.
            StorageError: the event is missing.
        """
        for event in self._repository.read_events(self.run.id, from_seq=note.seq, to_seq=note.seq + 1):
            return self._decode(json.loads(event.body)["step"]["observation"])
        raise StorageError(f"Event {note.seq} of run {self.run.id!r} is missing.")

    def next_achievement(self, position: int) -> int | None:
        """Return the position after the next step with an achievement; None if there is none."""
        self._index.complete(self._tell)
        here = self._index.before(position)
        if found := self._achieved(here, position, len(self)):
            return found[0]
        past = self._index.unlocking(here) + len(self._achieved(here, 0, position))
        later = range(here + 1, len(self._index.seqs))
        index = here + bisect_right(later, past, key=self._index.unlocking)
        found = self._achieved(index, position, len(self))
        return found[0] if found else None

    def previous_achievement(self, position: int) -> int | None:
        """Return the position after the previous step with an achievement; None if there is none."""
        self._index.complete(self._tell)
        here = self._index.before(max(0, position - 1))
        if found := self._achieved(here, 0, position - 1):
            return found[-1]
        earlier = range(here + 1)
        index = bisect_left(earlier, self._index.unlocking(here), key=self._index.unlocking) - 1
        found = self._achieved(index, 0, position - 1) if index >= 0 else []
        return found[-1] if found else None

    def _achieved(self, index: int, after: int, last: int) -> list[int]:
        """Return the positions of a part in (`after`, `last`] whose step has an achievement."""
        positions = enumerate(self._part(index)[1], start=self._index.positions[index] + 1)
        return [position for position, note in positions if note.achievements and after < position <= last]

    def spending(self) -> Spent:
        """Return the model usage of the whole run."""
        if self.run.summary is not None and self.run.status is not RunStatus.RUNNING:
            return replace(spending_of(self.run.summary), tokens_per_second=None)
        return spending_of_seats(list(self._tallies(len(self)).values()))

    def _scene(self, tally: SeatTally, notes: list[Note], *, whole: bool) -> SeatScene:
        name, agent = tally.name, tally.agent
        start = self._first_observation(name) if whole else None
        maxima = numbers(start) if start is not None else {}
        if not tally.steps:
            return SeatScene(name, agent, start, maxima=maxima)
        last = notes[-1] if notes else None
        observation = self.observation(last) if whole and last is not None else None
        for key, value in (numbers(observation) if observation is not None else {}).items():
            maxima[key] = max(value, maxima.get(key, value))
        return SeatScene(
            name,
            agent,
            observation,
            None,
            tally.steps,
            tally.episode,
            tally.reward,
            tuple(notes),
            tally.unlocked,
            maxima,
            tally.done,
            () if last is None else self._plan(name, last.seq),
        )

    def _plan(self, seat: str, seq: int) -> tuple[str, ...]:
        event = self._repository.last_event(self.run.id, "plan", seat=seat, before=seq)
        return () if event is None else tuple(single_line(line) for line in event.data.get("plan", ()))

    def _first_observation(self, seat: str) -> Observation | None:
        if seat not in self._first:
            events = self._repository.read_events(self.run.id, kinds=("observation",), seat=seat)
            event = next(iter(events), None)
            self._first[seat] = None if event is None else self._decode(event.data)
        return self._first[seat]

    def _decode(self, data: Any) -> Observation:
        # Any: recorded data; decoding validates it.
        return self._codec.decode(Observation, data, where="recorded observation")


def game_to_read(run: RunRecord, host: PluginHost) -> tuple[AdapterSpec | None, Codec, str]:
    """Return the game's spec (None if it can't be loaded), a codec for its types, and a remark on what is missing."""
    from wsap_core.factories import load
    from wsap_nexus.runs.plan import game_of

    try:
        spec = game_of(run, host)
        return spec, Codec([load(wire_type) for wire_type in spec.wire_types]), ""
    except WsapError as error:
        return None, Codec(), f"Shown without the game's own data: {error}"


def _seats(run: RunRecord) -> tuple[tuple[str, str], ...]:
    planned = run.config.get("seats")
    seats = {
        str(seat["name"]): str(seat.get("agent", run.agent))
        for seat in (planned if isinstance(planned, list) else ())
        if isinstance(seat, dict) and "name" in seat
    }
    return tuple(seats.items()) or (("", run.agent),)
