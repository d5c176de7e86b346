"""Why decisions were forced, as the totals and the summary of a run tell it."""

from __future__ import annotations

import json

import pytest

from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import dumps
from wsap_core.seams.agent import NO_USAGE, DecisionInfo
from wsap_nexus.runs.record.summary import counts
from wsap_nexus.runs.record.tally import MOST_CAUSES, OTHER_CAUSES, SeatTally, add_causes
from wsap_nexus.runs.record.trajectory import step_line


def played(*infos: DecisionInfo | None) -> SeatTally:
    tally = SeatTally("anna", "llm")
    for info in infos:
        result = ActionResult(True)
        tally.add(step_line("anna", Action("wait"), result), "wait", result, info)
    return tally


def forced(cause: str) -> DecisionInfo:
    return DecisionInfo(forced=True, cause=cause)


EMPTY = "the reply was empty"


def test_forced_decisions_are_counted_by_cause() -> None:
    tally = played(forced(EMPTY), DecisionInfo(repaired=True, cause="not JSON"), None, forced(f"{EMPTY}."), forced("x"))
    assert tally.causes == {EMPTY: 2, "x": 1}
    decisions = counts([tally, played(forced(EMPTY))])["decisions"]
    assert (decisions["forced"], decisions["causes"]) == (4, {EMPTY: 3, "x": 1})


def test_a_summary_in_which_nothing_was_forced_names_no_causes() -> None:
    assert "causes" not in counts([played(None, DecisionInfo(repaired=True, cause="not JSON"))])["decisions"]


def test_totals_name_the_same_fields_after_a_usage_was_written() -> None:
    before = counts([played(DecisionInfo())])["usage"]
    dumps(NO_USAGE)  # it keeps its text
    assert counts([played(DecisionInfo())])["usage"] == before


def test_the_causes_go_on_from_saved_totals() -> None:
    state = json.loads(json.dumps(played(forced(EMPTY)).state()))
    tally = SeatTally("anna", "llm")
    tally.restore(state)
    assert tally.causes == {EMPTY: 1}
    assert tally.copy().causes is not tally.causes


@pytest.mark.parametrize("many", [MOST_CAUSES + 1, 500])
def test_ever_new_causes_take_no_more_room(many: int) -> None:
    causes: dict[str, int] = {}
    for number in range(many):
        add_causes(causes, {f"cut off after {number} tokens\x1b": 1})
    assert len(causes) == MOST_CAUSES + 1
    assert causes[OTHER_CAUSES] == many - MOST_CAUSES
    assert "\x1b" not in "".join(causes)
