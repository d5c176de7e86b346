"""The minds in a run: what each seat's agent remembers when it begins, and what is kept when it ends.

What a mind remembers at a run's start is recorded in the run. Going on with the run, or playing it
again, begins with that and not with what the mind has become since; so the same steps follow.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from wsap_core.errors import SnapshotError, UsageError, WireError
from wsap_core.seams.memory import AgentMemory, OutlivesRuns
from wsap_llm.reflection import LESSON
from wsap_llm.secrets import redacted
from wsap_nexus.minds import HeldMind, Life, Mind, Minds, check_name
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.recorder import Recorder

Lessons = Mapping[int, tuple[str, ...]]
"""Lessons by the number of the decision (from 0) after which they were drawn."""


@dataclass(frozen=True)
class Beginning:
    """What a seat's mind was when the run began, as the run has it recorded."""

    mind: str
    number: int
    """The number of this life in the mind."""
    revision: int
    memory: bytes
    """The memory's snapshot; empty for a new mind."""

    def to_json(self) -> dict[str, Any]:
        """Return it for the log."""
        memory = base64.b64encode(self.memory).decode("ascii")
        return {"mind": self.mind, "number": self.number, "revision": self.revision, "memory": memory}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Beginning:
        """Return what was recorded.

        Raises:
            WireError: it is damaged.
        """
        try:
            memory = base64.b64decode(data["memory"], validate=True)
            return cls(str(data["mind"]), int(data["number"]), int(data["revision"]), memory)
        except (KeyError, TypeError, ValueError) as error:
            raise WireError(f"What was recorded of a mind is damaged: {error}.") from error


class RunMinds:
    """The minds of a run's seats.

    Args:
        held: those that this run may write, by seat; none for a run that is played again.
        past: what was recorded of them when the run began, by seat.
        recorder: where that is recorded.
        run_id: the run.
        game: what is played, for the mind's list of lives.
        flush: returns once everything recorded is committed; called before a mind is saved, so
            that no mind is ahead of its run.
        again: the run is another's that is played again, and has no record of them itself.
        now: the time.
    """

    def __init__(
        self,
        held: Mapping[str, HeldMind] | None = None,
        past: Mapping[str, Beginning] | None = None,
        *,
        recorder: Recorder | None = None,
        run_id: str = "",
        game: str = "",
        flush: Callable[[], None] | None = None,
        again: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._held = dict(held or {})
        self._begun = dict(past or {})
        self._recorder = recorder or Recorder(None, None)
        self._run_id = run_id
        self._game = game
        self._flush = flush or (lambda: None)
        self._again = again
        self._now = now
        self._ready: dict[str, tuple[SeatPlan, AgentMemory]] = {}

    def begin(self, plan: SeatPlan, agent: object) -> None:
        """Give a seat's agent what its mind remembers, or what was recorded of that.

        Raises:
            UsageError: the agent has no memory, or one of another kind.
            StorageError: the mind can't be read or written.
        """
        if plan.mind is None:
            return
        memory = getattr(agent, "memory", None)
        if not isinstance(memory, AgentMemory):
            raise UsageError(
                f"The agent {plan.agent!r} has no memory that the mind {plan.mind!r} could live in; "
                "add --memory fulltext, or leave --mind out."
            )
        held, begun = self._held.get(plan.name), self._begun.get(plan.name)
        mind = held.read() if held is not None and begun is None else None
        if begun is None:
            begun = self._beginning(plan, mind)
        if begun.memory:
            _restore(memory, begun, mind)
        if isinstance(memory, OutlivesRuns):
            memory.begin_run(f"run {begun.number}")
        if plan.name not in self._begun:
            if held is not None:
                mind = mind or Mind(plan.mind, _kind(plan, memory))
                held.write(mind.with_life(self._life(plan, begun.number, mind)))
            self._begun[plan.name] = begun
            self._recorder.mind(plan.name, begun.to_json())
        elif self._again:
            self._recorder.mind(plan.name, begun.to_json())
        self._ready[plan.name] = (plan, memory)

    def keep(self, seat: str, steps: int, lessons: Lessons) -> None:
        """Save what a seat's agent remembers now; nothing happens for one without a mind.

        Where another run has saved the mind since this one began, that stays, and the lessons of
        this run that are not in it yet are added; unless it has become a mind of another kind of
        memory, which is left alone, with a warning. A run without any decision leaves no trace.

        Args:
            seat: whose memory.
            steps: how many decisions it has made in the run.
            lessons: those that it drew in the run.

        Raises:
            StorageError: the mind can't be written; what was there is still there.
        """
        held, ready = self._held.get(seat), self._ready.get(seat)
        if held is None or ready is None:
            return
        plan, memory = ready
        begun = self._begun[seat]
        self._flush()
        mind = held.read() or Mind(held.name, _kind(plan, memory))
        life = self._life(plan, begun.number, mind)
        if not steps:
            _forget(held, mind.without_life(life))
            return
        if mind.memory and mind.revision != begun.revision and mind.saved_by != self._run_id:
            new = [(number, line) for number in sorted(lessons) if number >= life.steps for line in lessons[number]]
            if not self._added(memory, mind, new):
                return
        now = self._now().isoformat(timespec="seconds")
        saved = replace(
            mind.with_life(replace(life, saved=now, steps=steps)),
            memory=memory.snapshot(),
            kind=_kind(plan, memory),
            options=redacted(_options(plan)),
            revision=mind.revision + 1,
            saved_by=self._run_id,
        )
        held.write(saved)

    def _beginning(self, plan: SeatPlan, mind: Mind | None) -> Beginning:
        assert plan.mind is not None, "begin() looked"
        if mind is None:
            return Beginning(plan.mind, 1, 0, b"")
        life = mind.life_in(self._run_id, plan.name)
        return Beginning(plan.mind, life.number if life else mind.next_number(), mind.revision, mind.memory)

    def _life(self, plan: SeatPlan, number: int, mind: Mind) -> Life:
        known = mind.life_in(self._run_id, plan.name)
        began = self._now().isoformat(timespec="seconds")
        return known or Life(number, self._run_id, self._game, plan.name, began)

    def _added(self, memory: AgentMemory, mind: Mind, new: Sequence[tuple[int, str]]) -> bool:
        """Have the memory become the mind's with lessons added; return whether it could."""
        try:
            memory.restore(mind.memory)
        except SnapshotError as error:
            logging.getLogger("wsap.minds").warning(
                "The mind %r has become another since this run began, so what was learned here can't be added: %s",
                mind.name,
                error,
            )
            return False
        for number, line in new:
            memory.note(line, kind=LESSON, world=self._game, step=number + 1)
        return True


@contextmanager
def hold_minds(plan: RunPlan, minds: Minds, *, only_read: bool = False) -> Iterator[dict[str, HeldMind]]:
    """Give the minds of a plan's seats, to be written within the block by this run alone.

    Args:
        plan: the run.
        minds: where they are.
        only_read: the run is played again: there is nothing to write, and none is given.

    Raises:
        StorageLockedError: one of them is in another run.
        UsageError: a mind is given to two seats.
    """
    wanted = {seat.name: seat.mind for seat in plan.seats if seat.mind is not None and not only_read}
    with ExitStack() as stack:
        held: dict[str, HeldMind] = {}
        for seat, name in wanted.items():
            if name in [one.name for one in held.values()]:
                raise UsageError(f"The mind {name!r} can't be in two seats at once.")
            held[seat] = stack.enter_context(minds.hold(name))
        yield held


def with_minds(seats: Sequence[SeatPlan], given: Mapping[str, str]) -> tuple[SeatPlan, ...]:
    """Return the seats with minds in them.

    Args:
        seats: who sits where.
        given: seat -> mind; "" stands for the only seat there is.

    Raises:
        UsageError: there is no such seat, or several where one has to be named; a mind or a memory
            that lives elsewhere; a name that is none.
    """
    names = [seat.name for seat in seats]
    chosen: dict[str, str] = {}
    for seat, mind in given.items():
        if not seat and len(names) > 1:
            raise UsageError(f"Say which seat the mind {mind!r} is for, such as --mind {names[0]}={mind}.")
        if seat and seat not in names:
            raise UsageError(f"There is no seat {seat!r} for the mind {mind!r}; there are: {', '.join(names[:20])}.")
        chosen[seat or names[0]] = check_name(mind)
    for seat_plan in seats:
        if seat_plan.name in chosen and "memory.path" in seat_plan.options:
            raise UsageError("A memory with a file of its own (memory.path) is not a mind's; leave one of them out.")
    return tuple(replace(seat, mind=chosen.get(seat.name, seat.mind)) for seat in seats)


def _forget(held: HeldMind, mind: Mind) -> None:
    if mind.lives or mind.memory:
        held.write(mind)
    else:
        held.remove()


def _kind(plan: SeatPlan, memory: AgentMemory) -> str:
    return str(plan.options.get("memory") or type(memory).__name__)


def _options(plan: SeatPlan) -> dict[str, Any]:
    """Return the options of the memory; Any: as the user gave them."""
    return {n.removeprefix("memory."): v for n, v in plan.options.items() if n.startswith("memory.")}


def _restore(memory: AgentMemory, begun: Beginning, mind: Mind | None) -> None:
    try:
        memory.restore(begun.memory)
    except SnapshotError as error:
        made = f" It was made with --memory {mind.kind}." if mind is not None and mind.kind else ""
        raise UsageError(f"What the mind {begun.mind!r} remembers can't be taken in: {error}{made}") from error
