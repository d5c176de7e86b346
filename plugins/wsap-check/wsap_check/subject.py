"""The game under check, how a check is defined and run, and its findings."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from wsap_check.findings import CheckOutcome, Finding, Severity
from wsap_check.raised import describe
from wsap_check.steps import Step
from wsap_core.factories import load
from wsap_core.protocol.wire import Codec
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import World

T = TypeVar("T")

TICKING: ContextVar[set[asyncio.Task[None]]] = ContextVar("ticking")
"""References to the tasks of worlds that live during a check, so that they are not garbage-collected."""


class Fault(Exception):
    """The game failed where the check could not continue."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class TooLong(BaseException):
    """The time of a check is over; no game's `except Exception` catches it."""


TOO_LONG = "The check did not end within"
"""The first words of the finding about it."""


@contextlib.contextmanager
def _watched(seconds: float) -> Iterator[None]:
    """Raise `TooLong` where the code is after some seconds of processor time, which does not depend on how busy the
    machine is; only in the main thread, and where signals allow it."""
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_PROF)[0]:
        yield
        return

    def over(number: int, frame: object) -> None:
        raise TooLong("the time was over")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class NothingToCheck(Exception):
    """The check does not apply, or its case did not occur; the message says why."""


@dataclass(frozen=True)
class Subject:
    """A game under check; see `run_checks` for the fields."""

    kind: ClassVar[str] = "game"
    spec: AdapterSpec
    seed: int = 0
    steps: int = 300
    config: Mapping[str, Any] = field(default_factory=dict)
    text_limit: int = 8_000
    subprocesses: bool = True
    seconds: float = 120.0
    """Most seconds of processor time of one check."""
    patience: float = 5.0
    """Seconds without a step after which a world counts as stuck; twelve times as many if it uses the processor."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", self.spec.with_options(self.config))

    def can(self, ability: str) -> bool:
        """Return whether the game declares an ability."""
        return ability in self.spec.abilities

    def world(self, seed: int | None = None) -> World:
        """Return a fresh world (by default of the subject's seed)."""
        return World.create(self.spec, Context.create(self.seed if seed is None else seed, config=self.config))

    def codec(self) -> Codec:
        """Return a codec that knows the game's own types."""
        return Codec([load(reference) for reference in self.spec.wire_types])


class Notes:
    """Collects the findings of one check without duplicates."""

    def __init__(self, check: str) -> None:
        self._check = check
        self.measured = ""
        """What the check has measured; nothing is judged by it."""
        self._found: dict[tuple[str, str], Finding] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings so far."""
        return tuple(self._found.values())

    def error(self, message: str, where: str | Step = "", about: str = "", severity: Severity = "error") -> None:
        """Add a finding, unless there is one about the same thing (by default with the same message)."""
        place = where.where if isinstance(where, Step) else where
        self._found.setdefault((severity, about or message), Finding(self._check, severity, message, place))

    def warn(self, message: str, where: str = "", about: str = "") -> None:
        """Add a warning."""
        self.error(message, where, about, severity="warning")

    def advise(self, message: str, where: str = "", about: str = "") -> None:
        """Add advice: a sentence that says what the game can add."""
        self.error(message, where, about, severity="advice")

    def expect(self, holds: object, message: str, where: str | Step = "", about: str = "") -> bool:
        """Return whether something holds, and add an error if it does not."""
        if not holds:
            self.error(message, where, about)
        return bool(holds)

    def expect_same(self, difference: tuple[str, str] | None, message: str) -> bool:
        """Return whether two traces are alike, and add an error if not; `{}` in the message is the difference."""
        return difference is None or self.expect(False, message.format(difference[0]), difference[1])


Body = Callable[[Notes, Any], Coroutine[Any, Any, None]]
"""The code of a check of a `Subject` or an `AgentSubject`."""

Condition = Callable[[Any], str]
"""Returns why a check does not apply to a subject, or an empty text."""


@dataclass(frozen=True)
class Check:
    """One check."""

    name: str
    summary: str
    """The requirement that it checks, in one sentence."""
    applies: tuple[str | Condition, ...]
    """Required abilities, and other conditions."""
    body: Body
    acts: bool = True
    """Whether it acts in worlds, so that it does not apply to those that are `irreversible`."""
    section: str = ""
    """The section of a report in which it is told; empty for the protocol."""

    def __call__(self, subject: Any) -> list[Finding]:
        """Return the findings of the check; none if it does not apply."""
        return list(self.run(subject).findings)

    def run(self, subject: Any) -> CheckOutcome:
        """Run the check and return its outcome."""
        notes = Notes(self.name)
        try:
            if reason := next(filter(None, self._objections(subject)), ""):
                raise NothingToCheck(reason)
            with _watched(subject.seconds):
                run_sync(kept_alive(self.body(notes, subject)))
        except NothingToCheck as nothing:
            if not notes.findings:
                return CheckOutcome(self.name, self.summary, "skipped", str(nothing), section=self.section)
        except Fault as fault:
            notes.error(str(fault), fault.where)
        except TooLong as error:
            notes.error(f"{TOO_LONG} {subject.seconds:g} s: {describe(error)}. Mend the call, or play fewer --steps.")
        except Exception as error:
            notes.error(describe(error))
        return CheckOutcome.of(self.name, self.summary, notes.findings, self.section, notes.measured)

    def _objections(self, subject: Any) -> Iterator[str]:
        if self.acts and subject.can("irreversible"):
            yield "the game is 'irreversible', and the actions of the check can't be undone"
        for need in self.applies:
            if callable(need):
                yield need(subject)
            elif not subject.can(need):
                yield f"the {subject.kind} does not declare {need!r}"


def check(*applies: str | Condition, acts: bool = True, section: str = "") -> Callable[[Body], Check]:
    """Turn a coroutine function into a check with its name and the first line of its docstring; see `Check`."""

    def made(body: Body) -> Check:
        name = getattr(body, "__name__", "check").replace("_", "-")
        return Check(name, (body.__doc__ or name).split("\n", 1)[0], applies, body, acts, section)

    return made


def several_seats(subject: Subject) -> str:
    """Return why checks between seats do not apply."""
    return "" if subject.can("multi-seat") else "there is one seat"


def timed(reason: str, *timings: str) -> Condition:
    """Return the condition that the game has one of these timings, with the reason if it has not."""
    return lambda subject: "" if subject.spec.timing in timings else reason


at_once = timed("seats do not act at the same time", "simultaneous", "phased")


def other_processes(subject: Subject) -> str:
    """Return why nothing is compared with other processes."""
    return "" if subject.subprocesses else "comparison with other processes is off"


async def kept_alive(body: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, and then stop the worlds that live."""
    ticking: set[asyncio.Task[None]] = set()
    TICKING.set(ticking)
    try:
        return await body
    finally:
        for task in ticking:
            task.cancel()
        await asyncio.gather(*ticking, return_exceptions=True)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code, even if an event loop is running (in a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, coroutine).result()
