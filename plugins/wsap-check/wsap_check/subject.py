"""The game under check, how a check is defined and run, and its findings."""

from __future__ import annotations

import asyncio
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
"""The tasks of the worlds that live while a check is run; an event loop alone would let them be collected."""


class Fault(Exception):
    """The game failed where the check could not continue."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class NothingToCheck(Exception):
    """The check does not apply, or its case did not occur; the message says why."""


@dataclass(frozen=True)
class Subject:
    """A game under check, and what it takes to create fresh worlds of it."""

    kind: ClassVar[str] = "game"
    spec: AdapterSpec
    seed: int = 0
    steps: int = 300
    """About how many steps each check plays."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Options for every world. Any: as the user gave them."""
    text_limit: int = 8_000
    """Most characters that an observation's text may have."""
    subprocesses: bool = True
    """Whether to compare with other processes too."""
    patience: float = 5.0
    """Seconds that a world may take over one step before it counts as stuck."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", self.spec.with_options(self.config))

    def can(self, ability: str) -> bool:
        """Return whether the game declares an ability."""
        return ability in self.spec.abilities

    def world(self, seed: int | None = None) -> World:
        """Return a fresh world; of the subject's seed when None."""
        return World.create(self.spec, Context.create(self.seed if seed is None else seed, config=self.config))

    def codec(self) -> Codec:
        """Return a codec that knows the game's own types."""
        return Codec([load(reference) for reference in self.spec.wire_types])


class Notes:
    """Collects the findings of one check, each only once."""

    def __init__(self, check: str) -> None:
        self._check = check
        self._found: dict[tuple[str, str], Finding] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far."""
        return tuple(self._found.values())

    def error(self, message: str, where: str | Step = "", about: str = "", severity: Severity = "error") -> None:
        """Note what is wrong at a place; more about the same thing, or with the same message, is dropped."""
        place = where.where if isinstance(where, Step) else where
        self._found.setdefault((severity, about or message), Finding(self._check, severity, message, place))

    def warn(self, message: str, where: str = "") -> None:
        """Note what is worth a look."""
        self.error(message, where, severity="warning")

    def expect(self, holds: object, message: str, where: str | Step = "", about: str = "") -> bool:
        """Return whether something holds, and note an error where it does not."""
        if not holds:
            self.error(message, where, about)
        return bool(holds)

    def expect_same(self, difference: tuple[str, str] | None, message: str) -> bool:
        """Return whether two traces are alike, and note what differs, put in place of `{}`, where they are not."""
        return difference is None or self.expect(False, message.format(difference[0]), difference[1])


Body = Callable[[Notes, Any], Coroutine[Any, Any, None]]
"""What a check does. Any: a `Subject` or an `AgentSubject`, and coroutines' types for sending and throwing."""

Condition = Callable[[Any], str]
"""Says why a check does not apply to a subject; an empty text where it does. Any: a `Subject`, for checks of games."""


@dataclass(frozen=True)
class Check:
    """One row of the table of checks. Call it with a subject to get what it finds."""

    name: str
    summary: str
    """The promise that it checks, in one sentence."""
    applies: tuple[str | Condition, ...]
    """What it takes to apply: abilities that are declared, and conditions that say why not."""
    body: Body
    acts: bool = True
    """Whether it acts in worlds, which can't be taken back in those that are `live`."""

    def __call__(self, subject: Any) -> list[Finding]:
        """Return what the check finds in a subject (Any: a game's or an agent's); nothing where it does not apply."""
        return list(self.run(subject).findings)

    def run(self, subject: Any) -> CheckOutcome:
        """Return what came of the check: what it found, or why it was skipped."""
        notes = Notes(self.name)
        try:
            if reason := next(filter(None, self._objections(subject)), ""):
                raise NothingToCheck(reason)
            run_sync(kept_alive(self.body(notes, subject)))
        except NothingToCheck as nothing:
            if not notes.findings:
                return CheckOutcome(self.name, self.summary, "skipped", str(nothing))
        except Fault as fault:
            notes.error(str(fault), fault.where)
        except Exception as error:
            notes.error(describe(error))
        return CheckOutcome.of(self.name, self.summary, notes.findings)

    def _objections(self, subject: Any) -> Iterator[str]:
        if self.acts and subject.can("live"):
            yield "the game is 'live', and what the check does in it can't be taken back"
        for need in self.applies:
            if callable(need):
                yield need(subject)
            elif not subject.can(need):
                yield f"the {subject.kind} does not declare {need!r}"


def check(*applies: str | Condition, acts: bool = True) -> Callable[[Body], Check]:
    """Make a check of a coroutine function: its name is the function's, its summary the docstring's first line.

    Args:
        applies: abilities without which it does not apply, and conditions that say why it does not.
        acts: whether it acts in worlds, so that it does not apply to those that are `live`.
    """

    def made(body: Body) -> Check:
        name = getattr(body, "__name__", "check").replace("_", "-")
        return Check(name, (body.__doc__ or name).split("\n", 1)[0], applies, body, acts)

    return made


def several_seats(subject: Subject) -> str:
    """Say why checks between seats do not apply to a game of one."""
    return "" if subject.can("multi-seat") else "there is one seat"


def timed(reason: str, *timings: str) -> Condition:
    """Return the condition that seats act in one of these kinds of time; `reason` is said where they do not."""
    return lambda subject: "" if subject.spec.timing in timings else reason


at_once = timed("seats do not act at the same time", "simultaneous", "phased")


def other_processes(subject: Subject) -> str:
    """Say why nothing is compared with other processes."""
    return "" if subject.subprocesses else "other processes were not asked for"


async def kept_alive(body: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, and end the worlds that live when it is over."""
    ticking: set[asyncio.Task[None]] = set()
    TICKING.set(ticking)
    try:
        return await body
    finally:
        for task in ticking:
            task.cancel()
        await asyncio.gather(*ticking, return_exceptions=True)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from plain code, also where an event loop runs already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, coroutine).result()
