"""The game under check, how a check is defined and run, and its findings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from wsap_check.findings import CheckOutcome, Finding, Severity, status_of
from wsap_check.raised import describe
from wsap_core.factories import load
from wsap_core.protocol.wire import Codec
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import World

T = TypeVar("T")


TICKING: ContextVar[set[asyncio.Task[None]]] = ContextVar("ticking")
"""The worlds that live while a check is run, each kept alive by its task."""


class Fault(Exception):
    """The game failed where the check could not continue."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where


class NothingToCheck(Exception):
    """The check does not apply, or its case did not occur; the message says why."""


class _Declares(Protocol):
    """A game or an agent under check."""

    kind: ClassVar[str]

    def can(self, ability: str) -> bool: ...


S = TypeVar("S", bound=_Declares)


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
        self._seen: set[tuple[str, str]] = set()
        self.findings: list[Finding] = []

    def error(self, message: str, where: str = "", *, about: str = "") -> None:
        """Note an error; later ones about the same thing are dropped."""
        self._add("error", message, where, about)

    def warn(self, message: str, where: str = "", *, about: str = "") -> None:
        """Note a warning; later ones about the same thing are dropped."""
        self._add("warning", message, where, about)

    def _add(self, severity: Severity, message: str, where: str, about: str) -> None:
        key = (severity, about or message)
        if key not in self._seen:
            self._seen.add(key)
            self.findings.append(Finding(self._check, severity, message, where))


Body = Callable[[Notes, S], Coroutine[Any, Any, None]]
"""What a check does. Any: coroutines have types for sending and throwing that nobody uses here."""

Condition = Callable[[Any], str]
"""Says why a check does not apply to a subject; an empty text where it does. Any: a `Subject`, for checks of games."""


@dataclass(frozen=True)
class Check(Generic[S]):
    """One row of the table of checks. Call it with a subject to get what it finds."""

    name: str
    summary: str
    """The promise that it checks, in one sentence."""
    applies: tuple[str | Condition, ...]
    """What it takes to apply: abilities that are declared, and conditions that say why not."""
    body: Body[S]
    acts: bool = True
    """Whether it acts in worlds, which can't be taken back in those that are `live`."""

    def __call__(self, subject: S) -> list[Finding]:
        """Return what the check finds in a subject; nothing where it does not apply."""
        return list(self.run(subject).findings)

    def run(self, subject: S) -> CheckOutcome:
        """Return what came of the check: what it found, or why it was skipped."""
        notes = Notes(self.name)
        try:
            self._must_apply(subject)
            run_sync(kept_alive(self.body(notes, subject)))
        except NothingToCheck as nothing:
            if not notes.findings:
                return CheckOutcome(self.name, self.summary, "skipped", str(nothing))
        except Fault as fault:
            notes.error(fault.message, fault.where)
        except Exception as error:
            notes.error(describe(error))
        findings = tuple(notes.findings)
        return CheckOutcome(self.name, self.summary, status_of(findings), "", findings)

    def _must_apply(self, subject: S) -> None:
        if self.acts and subject.can("live"):
            raise NothingToCheck("the game is 'live', and what the check does in it can't be taken back")
        for need in self.applies:
            if callable(need):
                reason = need(subject)
            else:
                reason = "" if subject.can(need) else f"the {subject.kind} does not declare {need!r}"
            if reason:
                raise NothingToCheck(reason)


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


def check(*applies: str | Condition, acts: bool = True) -> Callable[[Body[S]], Check[S]]:
    """Make a check of a coroutine function: its name is the function's, its summary the docstring's first line.

    Args:
        applies: abilities without which it does not apply, and conditions that say why it does not.
        acts: whether it acts in worlds, so that it does not apply to those that are `live`.
    """

    def made(body: Body[S]) -> Check[S]:
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


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from plain code, also where an event loop runs already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, coroutine).result()
