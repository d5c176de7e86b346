"""What is checked, and how one check is made, run and told apart."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from wsap_check.findings import CheckOutcome, Finding, Severity, status_of
from wsap_core.errors import WsapError
from wsap_core.factories import load
from wsap_core.protocol.wire import Codec
from wsap_core.seams.context import Context
from wsap_core.specs import Ability, AdapterSpec
from wsap_core.untrusted import one_line
from wsap_core.worlds import World

T = TypeVar("T")
S = TypeVar("S")


class Fault(Exception):
    """The game broke down where a check could not go on."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where


class NothingToCheck(Exception):
    """The check does not apply, or its case did not come up; the message says why."""


@dataclass(frozen=True)
class Subject:
    """A game under check: whatever a check needs to make fresh worlds of it."""

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

    def can(self, ability: Ability) -> bool:
        """Return whether the game declares an ability."""
        return ability in self.spec.abilities

    def world(self, seed: int | None = None) -> World:
        """Return a fresh world; of the subject's seed when None."""
        return World.create(self.spec, Context.create(self.seed if seed is None else seed, config=self.config))

    def codec(self) -> Codec:
        """Return a codec that knows the game's own types."""
        return Codec([load(reference) for reference in self.spec.wire_types])


Body = Callable[["Notes", S], Coroutine[Any, Any, None]]
"""What a check does. Any: coroutines have types for sending and throwing that nobody uses here."""


class Notes:
    """Takes down what one check finds, each thing once."""

    def __init__(self, check: str) -> None:
        self._check = check
        self._seen: set[tuple[str, str]] = set()
        self.findings: list[Finding] = []

    def error(self, message: str, where: str = "", *, about: str = "") -> None:
        """Note an error; further ones about the same thing are passed over."""
        self._add("error", message, where, about)

    def warn(self, message: str, where: str = "", *, about: str = "") -> None:
        """Note a warning; further ones about the same thing are passed over."""
        self._add("warning", message, where, about)

    def _add(self, severity: Severity, message: str, where: str, about: str) -> None:
        key = (severity, about or message)
        if key not in self._seen:
            self._seen.add(key)
            self.findings.append(Finding(self._check, severity, message, where))


@dataclass(frozen=True)
class Check(Generic[S]):
    """One check. Call it with a subject to get what it finds."""

    name: str
    summary: str
    """What it holds a game to."""
    body: Body[S]
    applies: Callable[[S], str]
    """Gives why it does not apply to a subject, or an empty text."""

    def __call__(self, subject: S) -> list[Finding]:
        """Return what the check finds in a subject; nothing where it does not apply."""
        return list(self.run(subject).findings)

    def run(self, subject: S) -> CheckOutcome:
        """Return what came of the check: what it found, or why it was skipped."""
        notes = Notes(self.name)
        try:
            if reason := self.applies(subject):
                raise NothingToCheck(reason)
            run_sync(self.body(notes, subject))
        except NothingToCheck as nothing:
            if not notes.findings:
                return CheckOutcome(self.name, self.summary, "skipped", str(nothing))
        except Fault as fault:
            notes.error(fault.message, fault.where)
        except Exception as error:
            notes.error(describe(error))
        findings = tuple(notes.findings)
        return CheckOutcome(self.name, self.summary, status_of(findings), "", findings)


def check(
    name: str, summary: str, *, needs: tuple[Ability, ...] = (), applies: Callable[[Subject], str] | None = None
) -> Callable[[Body[Subject]], Check[Subject]]:
    """Make a check of a coroutine function that takes notes on a subject.

    Args:
        name: lower case, digits and dashes.
        summary: what it holds a game to, in one line.
        needs: abilities without which it does not apply.
        applies: gives any other reason for which it does not.
    """

    def reason(subject: Subject) -> str:
        missing = [ability for ability in needs if not subject.can(ability)]
        if missing:
            return f"the game does not declare {missing[0]!r}"
        return applies(subject) if applies is not None else ""

    return lambda body: Check(name, summary, body, reason)


def several_seats(subject: Subject) -> str:
    """Say why checks between seats do not apply to a game of one."""
    return "" if subject.can("multi-seat") else "there is one seat"


def describe(error: BaseException) -> str:
    """Return what an exception of a game says, in one sentence."""
    if isinstance(error, WsapError):
        return one_line(error)
    text = one_line(error)[:300] or "no message"
    return f"It raised {type(error).__name__}: {text}"


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from plain code, also where an event loop runs already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    outcome: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(coroutine))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
