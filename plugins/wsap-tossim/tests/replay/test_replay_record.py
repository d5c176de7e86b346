"""A game's record: what is saved is what is loaded, and what is damaged is said to be."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.errors import SnapshotError, UsageError, WireError, WsapError
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.setups import setup
from wsap_tossim.replay import Record, load_record, record, save_record

NAMES = ("Ann", "Bob </script>", "Cid \u202e", "Dora\ud800", "Eve")


def a_record(play: Callable[..., Any], **how: Any) -> Record:
    game, thoughts = play(2, **how)
    beliefs = [(1, 0, {1: 0.25, 4: 1.0}), (1, 3, {0: 0.0})]
    return Record(game, NAMES, ("scripted", "a", "b", "c", "d"), thoughts, beliefs)


@pytest.mark.parametrize("rounds", [None, 0, 1, 7])
def test_a_record_is_loaded_as_it_was_saved(play: Callable[..., Any], tmp_path: Path, rounds: int | None) -> None:
    kept = a_record(play, rounds=rounds)
    save_record(tmp_path / "town.json", kept)
    found = load_record(tmp_path / "town.json")
    assert found.game.log == kept.game.log
    assert found.to_json() == kept.to_json()
    assert (tuple(found.names), tuple(found.played_by)) == (NAMES, ("scripted", "a", "b", "c", "d"))
    assert list(found.beliefs) == list(kept.beliefs)
    assert found.page() == kept.page()
    assert found.page(3) == kept.page(3)
    assert [p.name for p in tmp_path.iterdir()] == ["town.json"], "nothing else is left behind"


def test_a_record_that_can_not_be_written_says_so(play: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written"):
        save_record(tmp_path / "nowhere" / "town.json", a_record(play, rounds=1))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"", WireError, "not JSON"),
        (b"{", WireError, "not JSON"),
        (b"\xff\xfe", WireError, "not JSON"),
        (b"[" * 100_000, WireError, "not JSON"),
        (b"[]", WireError, "is damaged: it is not an object"),
        (b'{"format": "other"}', WireError, "not a game's record"),
        (b'{"format": "wsap-tossim-game", "version": 2}', WireError, "version 2 of the record's format"),
        (b'{"format": "wsap-tossim-game", "version": 1}', WireError, "game is not an object"),
        (b'{"format": "wsap-tossim-game", "version": 1, "game": {}}', SnapshotError, "can't be replayed"),
        (b'{"a": NaN}', WireError, "not JSON"),
        (b'{"a": 1' + b"0" * 5000 + b"}", WireError, "not JSON"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(
    tmp_path: Path, data: bytes, error: type[WsapError], words: str
) -> None:
    path = tmp_path / "town.json"
    path.write_bytes(data)
    with pytest.raises(error) as raised:
        load_record(path)
    assert words in str(raised.value)
    assert "town.json" in str(raised.value)


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        load_record(tmp_path / "none.json")
    with pytest.raises(UsageError, match="can't be read"):
        load_record(tmp_path)
    monkeypatch.setattr(record, "LARGEST", 10)
    (tmp_path / "big.json").write_bytes(b" " * 11)
    with pytest.raises(UsageError, match="larger than"):
        load_record(tmp_path / "big.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ["a"]}, "5 players, but there are 1 names"),
        ({"names": ["a", "b", "c", "d", 5]}, r"names\[4\] has a value that is not text"),
        ({"names": "abcde"}, "names is not a list"),
        ({"minds": ["x"]}, "and 1 minds"),
        ({"thoughts": [[0, 5, "x"]]}, r"thoughts\[0\] has '5' instead of a whole number from 0 to 4"),
        ({"thoughts": [[0, True, "x"]]}, r"thoughts\[0\] has 'True'"),
        ({"thoughts": [[0, 1]]}, r"thoughts\[0\] is not a list of three"),
        ({"thoughts": [[0, 1, None]]}, r"thoughts\[0\] has a value that is not text"),
        ({"beliefs": [[1, 1, {"9": 0.5}]]}, "not a player's probability"),
        ({"beliefs": [[1, 1, {"1": 1.5}]]}, "from 0 to 1"),
        ({"beliefs": [[1, 1, []]]}, "not an object"),
    ],
)
def test_a_record_with_something_wrong_in_it_says_where(
    play: Callable[..., Any], change: dict[str, Any], words: str
) -> None:
    data = {**a_record(play, rounds=1).to_json(), **change}
    with pytest.raises(WireError, match=words):
        record.record_from_json(json.loads(json.dumps(data)))


def test_a_record_of_later_or_other_rules_is_refused(play: Callable[..., Any]) -> None:
    for change, words in (({"version": 99}, "has version 99"), ({"moon_phases": True}, "no rule 'moon_phases'")):
        data = json.loads(json.dumps(a_record(play, rounds=3).to_json()))
        data["game"]["rules"] |= change
        with pytest.raises(SnapshotError, match=words):
            record.record_from_json(data)


def test_a_choice_that_the_rules_forbid_is_noticed(play: Callable[..., Any]) -> None:
    data = json.loads(json.dumps(a_record(play, rounds=3).to_json()))
    choice = next(e for e in data["game"]["record"] if e[0] == 1 and e[2] != "will")
    choice[2:5] = ["guilty", [], ""]
    with pytest.raises(SnapshotError, match="round 1"):
        record.record_from_json(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.data())
def test_whatever_is_changed_in_a_record_it_is_read_or_refused(data: st.DataObject) -> None:
    game = Game(setup("five"), rule_set("classic"), 1)
    whole = Record(game, "abcde", (), [(0, 1, "x")], [(1, 2, {3: 0.5})]).to_json()
    at: Any = whole
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans()):
            at = at[key]
            continue
        at[key] = data.draw(JSON)
        break
    with contextlib.suppress(WsapError):
        assert record.record_from_json(json.loads(json.dumps(whole))).page().startswith("<!doctype html>")
