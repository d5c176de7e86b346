"""The conformance suite finds every fault in a set of deliberately broken worlds, and none in the sound ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsap_check import CHECKS, run_checks
from wsap_core import AdapterSpec
from wsap_core.loading import load_object

BROKEN = Path(__file__).parent / "broken"
FAULTS: dict[str, tuple[AdapterSpec, set[str]]] = {
    **load_object(f"{BROKEN / 'meadow_faults.py'}:FAULTS"),
    **load_object(f"{BROKEN / 'council_faults.py'}:FAULTS"),
}
TRANSIT_FAULTS: dict[str, tuple[AdapterSpec, set[str]]] = load_object(f"{BROKEN / 'keepsakes_faults.py'}:FAULTS")
ABOUT_TRANSIT = ["abilities", "spec", "snapshot-continues", *(c.name for c in CHECKS if c.name.startswith("transit-"))]
LATE = {"AchievedAgain", "PaidTwice", "SnapshotDrawsChance"}
"""Faults that show only after some steps."""
SOUND = {
    "meadow": load_object(f"{BROKEN / 'meadow.py'}:SPEC"),
    "orchard": load_object(f"{BROKEN / 'keepsakes.py'}:SPEC"),
    "council": load_object(f"{BROKEN / 'council.py'}:spec_of")(load_object(f"{BROKEN / 'council.py'}:Council")),
    "council in turn": load_object(f"{BROKEN / 'council.py'}:spec_of")(
        load_object(f"{BROKEN / 'council.py'}:CouncilInTurn")
    ),
    "meadow with a tool": load_object(f"{BROKEN / 'meadow_faults.py'}:THOUGHTFUL"),
    "council with a tool": load_object(f"{BROKEN / 'council.py'}:spec_of")(
        load_object(f"{BROKEN / 'council.py'}:Archive")
    ),
    "council with a tool, in turn": load_object(f"{BROKEN / 'council.py'}:spec_of")(
        load_object(f"{BROKEN / 'council.py'}:ArchiveInTurn")
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_world_has_no_finding(name: str) -> None:
    report = run_checks(SOUND[name], steps=60)
    assert report.findings == ()
    assert report.ok


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_world_fails_exactly_the_checks_that_are_about_its_fault(name: str) -> None:
    spec, expected = FAULTS[name]
    steps = 40 if name in LATE else 15
    report = run_checks(spec, steps=steps, subprocesses=bool(expected & {"other-process", "snapshot-elsewhere"}))
    assert {finding.check for finding in report.findings if finding.severity == "error"} == expected, report.to_text()
    assert not report.ok


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSIT_FAULTS)
def test_a_world_that_breaks_faith_with_travellers_fails_exactly_the_checks_about_its_fault(name: str) -> None:
    # Only what these worlds say and do about travellers is broken; the rest is the meadow's.
    spec, expected = TRANSIT_FAULTS[name]
    report = run_checks(spec, steps=15, only=ABOUT_TRANSIT)
    assert {finding.check for finding in report.findings if finding.severity == "error"} == expected, report.to_text()


def test_every_check_that_can_fail_finds_at_least_one_fault() -> None:
    found = {check for _, checks in [*FAULTS.values(), *TRANSIT_FAULTS.values()] for check in checks}
    found |= {"ticks", "ticks-continue", "refused-influence"}  # in test_ticks.py
    only_warn = {"first-episode", "seeds-matter"}
    assert {check.name for check in CHECKS if not check.section} - found == only_warn  # the others: test_stage_card.py
