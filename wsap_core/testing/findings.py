"""What the conformance suite says: findings, and the report they make up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wsap_core.untrusted import one_line

Severity = Literal["error", "warning"]
"""An error breaks what the protocol promises; a warning is worth a look."""

Status = Literal["passed", "warned", "failed", "skipped"]


@dataclass(frozen=True)
class Finding:
    """One thing that a check found."""

    check: str
    """The name of the check."""
    severity: Severity
    message: str
    """What was found and what to do about it."""
    where: str = ""
    """In which seed, episode, step and seat, as far as it has a place."""

    def to_text(self) -> str:
        """Return the finding on one line, safe to show."""
        place = f" ({one_line(self.where)})" if self.where else ""
        return f"{self.severity}: {one_line(self.message)}{place}"


@dataclass(frozen=True)
class CheckOutcome:
    """What came of one check."""

    name: str
    summary: str
    """What it holds a game to."""
    status: Status
    reason: str = ""
    """Why it was skipped."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Report:
    """What came of all checks of one game or agent."""

    subject: str
    """Its name."""
    seed: int
    steps: int
    checks: tuple[CheckOutcome, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found, in the order of the checks."""
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def ok(self) -> bool:
        """Whether no check found an error; warnings are allowed."""
        return not any(finding.severity == "error" for finding in self.findings)

    def count(self, status: Status) -> int:
        """Return how many checks ended that way."""
        return sum(check.status == status for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-ready data (Any: text, numbers, lists and objects)."""
        return {
            "subject": self.subject,
            "ok": self.ok,
            "seed": self.seed,
            "steps": self.steps,
            "passed": self.count("passed") + self.count("warned"),
            "failed": self.count("failed"),
            "skipped": self.count("skipped"),
            "checks": [json.loads(json.dumps(asdict(check))) for check in self.checks],
        }

    def to_text(self) -> str:
        """Return the report for people: a line for each check, and its findings below it."""
        width = max((len(check.name) for check in self.checks), default=0)
        lines: list[str] = []
        for check in self.checks:
            tail = f"skipped: {check.reason}" if check.status == "skipped" else check.summary
            lines.append(f"{_MARKS[check.status]}  {check.name:<{width}}  {one_line(tail)}")
            lines += [f"      {finding.to_text()}" for finding in check.findings]
        return "\n".join([*lines, "", self.verdict()])

    def verdict(self) -> str:
        """Return the outcome in one sentence."""
        ran = len(self.checks) - self.count("skipped")
        name = one_line(self.subject)
        if self.ok:
            remarks = sum(len(check.findings) for check in self.checks)
            tail = f", with {_plural(remarks, 'warning')}" if remarks else ""
            return f"{name} keeps its promises: {_plural(ran, 'check')} passed{tail}."
        return f"{name} fails {self.count('failed')} of {_plural(ran, 'check')}."


_MARKS: dict[Status, str] = {"passed": "ok  ", "warned": "warn", "failed": "FAIL", "skipped": "-   "}


def status_of(findings: Sequence[Finding]) -> Status:
    """Return how a check ended that found these."""
    if any(finding.severity == "error" for finding in findings):
        return "failed"
    return "warned" if findings else "passed"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
