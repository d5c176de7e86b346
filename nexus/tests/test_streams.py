"""What comes in pieces is read the same wherever it is cut: server-sent events, and `<think>` blocks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wsap_core.llm.think import ThinkSplitter
from wsap_core.llm.types import TextChunk
from wsap_nexus.backends.sse import EventReader


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


def test_data_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        events([b"data: \xff\n\n"])


def split(pieces: Iterable[str], *, opened: bool = False) -> tuple[str, str]:
    splitter = ThinkSplitter(opened=opened)
    chunks = [chunk for piece in pieces for chunk in splitter.feed(piece)] + list(splitter.close())
    assert all(chunk.text for chunk in chunks), "an empty piece tells nothing"
    said = "".join(c.text for c in chunks if isinstance(c, TextChunk))
    return said, "".join(c.text for c in chunks if not isinstance(c, TextChunk))


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


def test_a_long_thought_is_split_in_time_that_grows_with_its_length() -> None:
    text = "<think>" + "<" * 200_000 + "</think>said"
    said, thought = split(text[i : i + 4] for i in range(0, len(text), 4))
    assert (said, len(thought)) == ("said", 200_000)
