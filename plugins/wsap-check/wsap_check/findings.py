"""Findings, the outcome of each check, and the report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line

Severity = Literal["error", "warning"]
"""An error is a violation of the protocol or the spec; a warning is a possible problem."""

Status = Literal["passed", "warned", "failed", "skipped"]


@dataclass(frozen=True)
class Finding:
    """One problem that a check found."""

    check: str
    """The name of the check."""
    severity: Severity
    message: str
    """The problem, and how to fix it."""
    where: str = ""
    """The seed, episode, step and seat, if it occurred in play."""

    def to_text(self) -> str:
        """Return the finding on one line, safe for terminals."""
        place = f" ({single_line(self.where)})" if self.where else ""
        return f"{self.severity}: {single_line(self.message)}{place}"


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of one check."""

    name: str
    summary: str
    """The requirement that it checks, in one sentence."""
    status: Status
    reason: str = ""
    """Why it was skipped."""
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, name: str, summary: str, findings: tuple[Finding, ...]) -> CheckOutcome:
        """Return the outcome of a check with these findings."""
        failed = any(finding.severity == "error" for finding in findings)
        return cls(name, summary, "failed" if failed else "warned" if findings else "passed", "", findings)

    def to_text(self) -> str:
        """Return a line for the check, followed by one per finding."""
        tail = f"skipped: {self.reason}" if self.status == "skipped" else self.summary
        first = f"{_MARKS[self.status]}  {self.name:<{_WIDTH}}  {single_line(tail)}"
        return "\n".join([first, *(f"      {finding.to_text()}" for finding in self.findings)])


@dataclass(frozen=True)
class Report:
    """The outcomes of all checks of one game or agent."""

    subject: str
    seed: int
    steps: int
    checks: tuple[CheckOutcome, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the checks."""
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def ok(self) -> bool:
        """Whether no check found an error; warnings are allowed."""
        return not any(finding.severity == "error" for finding in self.findings)

    def count(self, status: Status) -> int:
        """Return the number of checks with that status."""
        return sum(check.status == status for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        said = {"subject": self.subject, "ok": self.ok, "seed": self.seed, "steps": self.steps}
        passed = self.count("passed") + self.count("warned")
        counts = {"passed": passed, "failed": self.count("failed"), "skipped": self.count("skipped")}
        return {**said, **counts, "checks": json.loads(json.dumps([asdict(check) for check in self.checks]))}

    def to_text(self) -> str:
        """Return the report for people: a line for each check, followed by its findings."""
        return "\n".join([*(check.to_text() for check in self.checks), "", self.verdict()])

    def verdict(self) -> str:
        """Return the outcome in one sentence."""
        ran = len(self.checks) - self.count("skipped")
        name = single_line(self.subject)
        if self.ok:
            tail = f", with {plural(len(self.findings), 'warning')}" if self.findings else ""
            return f"{name} conforms to the protocol: {plural(ran, 'check')} passed{tail}."
        return f"{name} fails {self.count('failed')} of {plural(ran, 'check')}."


_MARKS: dict[Status, str] = {"passed": "ok  ", "warned": "warn", "failed": "FAIL", "skipped": "-   "}
_WIDTH = 18  # of the names of checks
