"""Findings, the outcome of each check, and the report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line

Severity = Literal["error", "warning", "advice"]
"""An error is a violation of the protocol or the spec; a warning is a possible problem; advice says what else a game
can offer."""

Status = Literal["passed", "advised", "warned", "failed", "skipped"]

HEADINGS = {"stage": "The stage card: what people get who watch and play the game on its page"}
"""Section of a report -> its heading; the checks of the protocol come first and have none."""


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
    section: str = ""
    """`stage` for a row of the stage card; empty for the protocol."""
    measured: str = ""
    """What was measured, such as the time for a picture; nothing is judged by it."""

    @classmethod
    def of(
        cls, name: str, summary: str, findings: tuple[Finding, ...], section: str = "", measured: str = ""
    ) -> CheckOutcome:
        """Return the outcome of a check with these findings."""
        found = {finding.severity for finding in findings}
        status: Status = "passed"
        if found:
            status = "failed" if "error" in found else "warned" if "warning" in found else "advised"
        return cls(name, summary, status, "", findings, section, measured)

    def to_text(self) -> str:
        """Return a line for the check, followed by one per finding."""
        tail = f"skipped: {self.reason}" if self.status == "skipped" else self.summary
        tail += f" ({self.measured})" if self.measured else ""
        first = f"{_MARKS[self.status]}  {self.name:<{_WIDTH}}  {single_line(tail)}"
        return "\n".join([first, *(f"      {finding.to_text()}" for finding in self.findings)])

    def below(self, before: CheckOutcome | None) -> str:
        """Return the text as it follows that of the check before, with a heading if its section begins."""
        begins = self.section and (before is None or before.section != self.section)
        return f"\n{HEADINGS[self.section]}\n{self.to_text()}" if begins else self.to_text()


@dataclass(frozen=True)
class Report:
    """The outcomes of all checks of one game or agent."""

    subject: str
    seed: int
    steps: int
    checks: tuple[CheckOutcome, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All errors and warnings, in the order of the checks."""
        return tuple(one for check in self.checks for one in check.findings if one.severity != "advice")

    @property
    def advice(self) -> tuple[Finding, ...]:
        """What else the game can offer, in the order of the checks."""
        return tuple(one for check in self.checks for one in check.findings if one.severity == "advice")

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
        passed = self.count("passed") + self.count("advised") + self.count("warned")
        counts = {"passed": passed, "failed": self.count("failed"), "skipped": self.count("skipped")}
        return {**said, **counts, "checks": json.loads(json.dumps([asdict(check) for check in self.checks]))}

    def to_text(self) -> str:
        """Return the report for people: a line for each check, followed by its findings."""
        told = (check.below(before) for check, before in zip(self.checks, (None, *self.checks), strict=False))
        return "\n".join([*told, "", self.verdict()])

    def verdict(self) -> str:
        """Return the outcome in one sentence."""
        ran = len(self.checks) - self.count("skipped")
        name = single_line(self.subject)
        if self.ok:
            noted = [plural(len(self.findings), "warning")] if self.findings else []
            noted += [plural(len(self.advice), "tip")] if self.advice else []
            tail = f", with {' and '.join(noted)}" if noted else ""
            return f"{name} conforms to the protocol: {plural(ran, 'check')} passed{tail}."
        return f"{name} fails {self.count('failed')} of {plural(ran, 'check')}."


_MARKS: dict[Status, str] = {"passed": "ok  ", "advised": "tip ", "warned": "warn", "failed": "FAIL", "skipped": "-   "}
_WIDTH = 18  # of the names of checks
