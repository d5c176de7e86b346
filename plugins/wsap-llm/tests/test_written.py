"""What is shown of a reply while it is being written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_llm.reply.written import in_words


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('{"reas', ""),
        ('{"reasoning": "I am hungry, so I lo', "I am hungry, so I lo"),
        ('{"reasoning": "I eat.", "action": "collect_drink"', "I eat.\naction: collect_drink"),
        (
            '```json\n{"reasoning": "I dig.", "action": "move", "params": {"steps": 3, "far": true}}\n```',
            "I dig.\naction: move\nparams: steps 3, far yes",
        ),
        ('{"action": "wait", "params": {}}', "action: wait"),
        ('{"причина": "Я голод', "Я голод"),
        ('{"plan": ["wood", "table"', "plan: wood, table"),
        ("I think I shall {wait}.", "I think I shall {wait}."),
        ("{not JSON", "{not JSON"),
        ("", ""),
    ],
)
def test_of_json_the_words_are_shown_and_other_text_as_it_is(written: str, shown: str) -> None:
    assert in_words(written) == shown


@given(st.text(min_size=1), st.integers(0, 200))
def test_however_much_is_written_only_a_part_of_the_whole_is_shown(reasoning: str, length: int) -> None:
    whole = json.dumps({"reasoning": reasoning, "action": "noop"})
    part = in_words(whole[:length])
    if whole[:length].startswith("{"):
        assert f"{reasoning}\naction: noop".startswith(part)
