"""What a script may say, however odd, becomes a perception that fits the schema, or is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from script_server import FACTS

from wsap_tes3mp.engines.tes3mp.connection import LONGEST, LineReader, read_object
from wsap_tes3mp.engines.tes3mp.facts import body_of
from wsap_tes3mp.protocol.errors import SchemaMismatchError
from wsap_tes3mp.protocol.perception import PerceptionOutput

LETTERS = st.sampled_from('aZ,-1 "\\\n\0\x1b\x7f\xe9\u202e\ud800')
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(LETTERS, max_size=300),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "ref_id", "x", "count", "quest"]), inner, max_size=3)
    ),
    max_leaves=6,
)
PIECES = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"a"',
    b":",
    b",",
    b"1e999",
    b"NaN",
    b"-Infinity",
    b'"\\ud800"',
    b"\xff",
    b"9" * 5000,
)
ROWS = ("entities", "inventory", "journal")


def perceived(facts: dict[str, Any]) -> PerceptionOutput:
    body = body_of(facts)
    json.dumps(body, allow_nan=False).encode()
    return PerceptionOutput.model_validate({**body, "timestamp": datetime(2026, 3, 21, tzinfo=UTC), "agent_id": "mira"})


@given(
    st.dictionaries(st.sampled_from(sorted(FACTS)), ODD, max_size=6),
    st.sampled_from(ROWS),
    st.dictionaries(st.sampled_from(["id", "ref_id", "name", "cell", "x", "count", "index", "quest"]), ODD, max_size=4),
)
@pytest.mark.slow
def test_odd_facts_become_a_perception_or_are_refused(odd: dict[str, Any], rows: str, row: dict[str, Any]) -> None:
    good = FACTS[rows][0]
    facts = {**FACTS, rows: [good, {**good, **row}, *FACTS[rows]], **odd}
    try:
        seen = perceived(facts)
    except SchemaMismatchError:
        assert {"cell", "x", "y", "z", "health"} & odd.keys()
        return
    assert seen.fidelity is not None


def test_an_empty_table_of_the_script_is_an_empty_list() -> None:
    seen = perceived({**FACTS, "entities": {}, "inventory": {}, "journal": {}, "weather": "ash", "hour": None})
    assert (seen.nearby_entities, seen.inventory, seen.active_quests) == ((), (), ())
    assert (seen.environment.weather, seen.environment.time_of_day) == ("ash", "unknown")
    assert seen.fidelity is not None
    assert seen.fidelity["environment.time_of_day"] == "unavailable"


def test_names_stay_data() -> None:
    entity = {**FACTS["entities"][0], "name": '"; tgm\n/quit \x1b[2J \ud800'}
    seen = perceived({**FACTS, "entities": [entity]})
    assert seen.nearby_entities[0].name == '"; tgm /quit  [2J'


def test_what_is_in_another_interior_is_not_near() -> None:
    there = {**FACTS["entities"][0], "cell": "Cellar"}
    assert perceived({**FACTS, "entities": [there]}).nearby_entities == ()
    assert perceived({**FACTS, "entities": [{**there, "cell": "-3, -1"}]}).nearby_entities != ()
    assert perceived({**FACTS, "cell": "Mill", "interior": True, "entities": [there]}).nearby_entities == ()


@given(st.lists(st.binary(max_size=30), max_size=12), st.integers(1, 40))
def test_lines_are_cut_the_same_however_the_bytes_come(pieces: list[bytes], longest: int) -> None:
    data = b"".join(pieces)
    reader = LineReader(longest)
    found = [line for piece in pieces for line in reader.feed(piece)]
    assert found == [line for line in data.split(b"\n")[:-1] if len(line) <= longest]


def test_a_line_without_end_takes_no_more_memory_than_one_line() -> None:
    reader = LineReader()
    for _ in range(100):
        assert reader.feed(b"x" * 65536) == []
        assert len(reader._rest or b"") <= LONGEST
    assert reader.feed(b"\n{}\n") == [b"{}"]


@given(st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join))
def test_any_bytes_are_an_object_or_nothing(line: bytes) -> None:
    found = read_object(line)
    assert found is None or json.dumps(found, allow_nan=False)
