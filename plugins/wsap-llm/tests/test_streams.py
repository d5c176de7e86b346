"""Streams are read the same wherever they are cut: server-sent events, and `<think>` blocks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wsap_llm.backends.openai.wire import Deltas, EventReader
from wsap_llm.text.thinking import ThinkSplitter


def events(pieces: Iterable[bytes]) -> list[str]:
    reader = EventReader()
    found = [event for piece in pieces for event in reader.feed(piece)]
    return found + list(reader.close())


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(marks)]


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        # The examples of the HTML standard, section 9.2.6.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", ["YHOO\n+2\n10"]),
        (b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
         ["first event", "second event", " third event"]),
        (b"data\n\ndata\ndata\n\n", ["", "\n"]),
        (b"data:test\n\ndata: test\n\n", ["test", "test"]),
        (b"\xef\xbb\xbfdata: after a mark\n\n", ["after a mark"]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", ["a", "b", "c"]),
        (b"data: [DONE]", ["[DONE]"]),
        (b"data: [DONE]\r\n", ["[DONE]"]),
        (b"event: ping\n\nretry: 5\n\n", []),
        (b"database: no\nDATA: no\n\n", []),
        (b"", []),
    ],
)  # fmt: skip
def test_events_are_read_as_the_standard_says(stream: bytes, found: list[str]) -> None:
    assert events([stream]) == found
    assert events(stream[i : i + 1] for i in range(len(stream))) == found


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=4),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(0, 500), max_size=12),
)
def test_events_do_not_depend_on_where_they_are_cut(texts: list[str], end: bytes, places: list[int]) -> None:
    values = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    stream = b"".join(b"data: " + value.encode() + end + b":" + end + end for value in values)
    assert events(cut(stream, places)) == values


@given(
    st.lists(
        st.sampled_from([b"data", b"data:", b"data: ", b"a", b"\n", b"\n\n", b"\r", b"\r\n", b": c", b"\xef\xbb\xbf"]),
        max_size=12,
    ),
    st.lists(st.integers(0, 60), max_size=12),
)
def test_any_lines_are_read_the_same_wherever_they_are_cut(parts: list[bytes], places: list[int]) -> None:
    stream = b"".join(parts)
    assert events(cut(stream, places)) == events([stream]) == by_lines(stream)


def by_lines(stream: bytes) -> list[str]:
    """Parse by the standard's rules, line by line; an event at the end without its empty line counts, too."""
    lines = stream.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found: list[str] = []
    data: list[str] = []
    for line in [*lines, ""]:
        if not line and data:
            found.append("\n".join(data))
            data = []
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
    return found


def test_an_event_of_many_lines_is_read_however_long_it_is() -> None:
    lines = [b"data: " + b"x" * 90 for _ in range(2000)]
    stream = b"\n".join(lines) + b"\n\ndata: next\n\n"
    found = events(stream[i : i + 10_000] for i in range(0, len(stream), 10_000))
    assert found == ["\n".join(["x" * 90] * 2000), "next"]


def test_data_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        events([b"data: \xff\n\n"])


def delta(text: str, **more: Any) -> str:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, **more}
    return json.dumps({"id": "c-1", "object": "chat.completion.chunk", "choices": [choice], "usage": None})


PIECES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"', "\\", '"content": "', '"}', "\x00", "</think>", "\n\n"]
)


@given(st.lists(PIECES, min_size=1, max_size=6), st.booleans())
def test_known_deltas_say_what_json_says(texts: list[str], ascii_only: bool) -> None:
    deltas = Deltas()
    for text in texts:
        data = delta(text) if ascii_only else json.dumps(json.loads(delta(text)), ensure_ascii=False)
        said = deltas.text(data)
        assert said is None or said == text
        deltas.learn(data, json.loads(data))
    first = next((text for text in texts if text), None)
    assert deltas.text(delta("more")) == ("more" if first is not None else None)


@pytest.mark.parametrize(
    "data",
    [
        delta("x", finish_reason="stop"),
        delta("x", logprobs={"content": [{"token": "x"}]}),
        delta("x").replace("c-1", "c-2"),
        delta("x")[:-1],
        delta("x") + " ",
        delta("x").replace('"x"', '"x\\"'),
        delta("x").replace('"x"', '"\\u12"'),
        delta("x").replace('"x"', '"\x01"'),
        delta("x").replace('"x"', '"x", "reasoning": "y"'),
        delta("x").replace('"x"', '"x", "content": "y"'),
        delta("x").replace('"x"', "null"),
        delta(""),
        "",
        "[DONE]",
    ],
)
def test_an_event_that_does_more_than_say_text_is_read_as_json(data: str) -> None:
    deltas = Deltas()
    deltas.learn(delta("word"), json.loads(delta("word")))
    assert deltas.text(delta("x")) == "x"
    assert deltas.text(data) is None


def test_nothing_is_learned_from_text_under_another_name() -> None:
    value = {"note": {"content": "x"}, **json.loads(delta("x"))}
    deltas = Deltas()
    deltas.learn(json.dumps(value), json.loads(json.dumps(value)))
    assert deltas.text(json.dumps(value)) is None


def split(pieces: Iterable[str], *, opened: bool = False) -> tuple[str, str]:
    splitter = ThinkSplitter(opened=opened)
    for piece in pieces:
        splitter.feed(piece)
    draft = splitter.draft
    whole = splitter.close()
    assert whole.text.startswith(draft.text)
    assert whole.thinking.startswith(draft.thinking)
    return whole.text, whole.thinking


WORDS = st.lists(
    st.sampled_from(["<think>", "</think>", "<", "<th", "</", ">", " ", "\n", "a", "think", "é"]), max_size=12
)


@given(WORDS, st.lists(st.integers(0, 100), max_size=8), st.booleans())
@example(["<think>", "a", "</think>", " ", "b"], [3, 9, 12], False)
def test_thinking_does_not_depend_on_where_it_is_cut(words: list[str], places: list[int], opened: bool) -> None:
    text = "".join(words)
    marks = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    pieces = [text[a:b] for a, b in itertools.pairwise(marks)]
    assert split(pieces, opened=opened) == split([text], opened=opened)


@given(WORDS)
def test_a_reply_that_does_not_begin_with_the_block_is_left_alone(words: list[str]) -> None:
    text = "x" + "".join(words)
    assert split([text]) == (text, "")


@pytest.mark.slow
def test_a_long_thought_is_split_in_time_that_grows_with_its_length() -> None:
    text = "<think>" + "<" * 200_000 + "</think>said"
    said, thought = split(text[i : i + 4] for i in range(0, len(text), 4))
    assert (said, len(thought)) == ("said", 200_000)
