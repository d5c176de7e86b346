"""The object that fits a schema is found in whatever a model writes around it."""

from __future__ import annotations

import json

import pytest

from wsap_llm.kit import find_object, find_values
from wsap_llm.reply.json_text.repair import DEEPEST

TEXT = {"type": "string", "maxLength": 300}
SCHEMA = {
    "type": "object",
    "properties": {
        "people": {"type": "object", "properties": {"ann": {"type": "object", "properties": {"does": TEXT}}}},
        "mood": {"type": "string", "enum": ["good", "bad"]},
        "words": {"type": "array", "items": TEXT},
    },
}
REAL = {"people": {"ann": {"does": "She waits."}}, "mood": "bad", "words": ["Rain."]}
SAID = json.dumps(REAL)


@pytest.mark.parametrize(
    "reply",
    [
        SAID,
        f"```json\n{SAID}\n```",
        f'The shape is {{"people": {{}}}} so:\n{SAID}',
        f'<think>{{"maybe": 1}}</think>{SAID}',
        f'<think>{{"mood": "good"}}</think>{SAID}',
        f"<think>{SAID}",
        f'{{"people": {{"ann": {{"does": "..."}}}}, "mood": "good|bad", "words": ["..."]}}\n\n{SAID}',
        f'{SAID}\nIn short: {{"mood": "bad"}}',
        f'Draft: {{"mood": "good", "people": {{}}}}\nFinal: {SAID}',
        f'{{"answer": {SAID}}}',
        f"[{SAID}]",
        f"{{}} {SAID}",
        SAID.replace('"', "'"),
        SAID[:-1],
    ],
)
def test_the_object_that_fits_the_schema_is_found(reply: str) -> None:
    assert find_object(reply, SCHEMA) == REAL


def test_of_equal_objects_the_last_is_taken() -> None:
    assert find_object('{"mood": "good"} No: {"mood": "bad"}', SCHEMA) == {"mood": "bad"}


def test_content_of_another_kind_counts_as_content() -> None:
    listed = {"people": [{"id": "ann", "does": "She waits."}], "mood": "bad", "words": []}
    echo = '{"people": {"ann": {"does": "..."}}, "mood": "good|bad", "words": ["..."]}'
    assert find_object(f"{echo} {json.dumps(listed)}", SCHEMA) == listed


def test_without_one_that_fits_there_is_the_first_object_or_none() -> None:
    assert find_object('{"a": 1} {"b": 2}', SCHEMA) == {"a": 1}
    for reply in ("", "no", "[1, 2]", "null", "[" * 5000, "{" * 5000, "<html>503</html>"):
        assert find_object(reply, SCHEMA) is None, reply[:9]


@pytest.mark.parametrize("opening", ['{"people": ', '{"words": [', "["])
def test_valid_json_is_read_to_the_same_depth_as_any_other(opening: str) -> None:
    closing = "".join("]}"["[{".index(sign)] for sign in reversed(opening) if sign in "[{")
    shallow, deep = (f"{opening * depth}{SAID}{closing * depth}" for depth in (DEEPEST // 4, 400))
    assert [found.value for found in find_values(shallow)] == [json.loads(shallow)]
    assert [found.value for found in find_values(deep)] == [None]
    assert find_object(f"{SAID} {deep}", SCHEMA) == REAL
