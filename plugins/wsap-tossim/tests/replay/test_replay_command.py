"""`wsap tossim replay`: from a record, from an exported run, and from a run in the database."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsap_core.cli.app import run
from wsap_core.errors import WireError
from wsap_tossim.cli.sources import found
from wsap_tossim.knowledge import seen_by
from wsap_tossim.replay import Record, save_record
from wsap_tossim.replay.runs import record_of_run

NAMES = ("Ann", "Bob", "Cid", "Dora", "Eve")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, and a home of its own."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def town(there: Path, play: Callable[..., Any]) -> Record:
    """A record in town.json."""
    game, thoughts = play(4)
    record = Record(game, NAMES, (), thoughts)
    save_record(there / "town.json", record)
    return record


def test_a_record_becomes_a_page_beside_it(there: Path, town: Record, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tossim", "replay", "town.json"]) == 0
    assert (there / "town.html").read_text(encoding="utf-8") == town.page(called="town.json")
    assert "Wrote town.html" in capsys.readouterr().err
    assert run(["tossim", "replay", "town.json"]) == 2
    assert "town.html already exists" in capsys.readouterr().err
    assert run(["tossim", "replay", "town.json", "--force", "--view", "public"]) == 0
    assert (there / "town.html").read_text(encoding="utf-8") == town.page("public")
    assert run(["tossim", "replay", "town.json", "--out", "cid.html", "--view", "cid"]) == 0
    assert (there / "cid.html").read_text(encoding="utf-8") == town.page(2)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none.json"], 2, "can't be read"),
        (["town.json", "--view", "Zoe"], 2, "There is no view 'Zoe'; there are: all, public, Ann, Bob"),
        (["town.json", "--out", "nowhere/a.html"], 2, "can't be written"),
        (["bad.json"], 5, "not a game's record"),
        (["bad.jsonl"], 5, "line 2 is not JSON"),
        (["other.jsonl"], 5, "a run of 'crafter', not of tossim"),
        (["no-such-run"], 2, "no run called 'no-such-run'"),
    ],
)
def test_what_can_not_be_shown_is_refused_in_one_sentence(
    there: Path, town: Record, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    (there / "bad.json").write_text("hello", encoding="utf-8")
    (there / "bad.jsonl").write_text(
        '{"format":"wsap-run","format_version":1,"game":"tossim","config":{"options":{}}}\n{'
    )
    (there / "other.jsonl").write_text('{"format":"wsap-run","format_version":1,"game":"crafter"}\n')
    assert run(["tossim", "replay", *arguments]) == code
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not list(there.glob("*.html"))


def test_the_group_lists_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tossim", "--help"]) == 0
    assert "replay" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["five", "nine"])
@pytest.mark.slow
def test_a_recorded_run_is_the_game_that_was_played(there: Path, capsys: pytest.CaptureFixture[str], mode: str) -> None:
    """Each seat's part of the game that is played again is what the seat was shown, event by event."""
    assert run(["play", "tossim", "--seed", "3", "--option", f"mode={mode}", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert run(["tossim", "replay", "last", "--out", "run.html"]) == 0
    assert run(["export", "last", "--output", "run.jsonl"]) == 0
    assert run(["tossim", "replay", "run.jsonl"]) == 2, "there is such a page already"
    record = found(str(there / "run.jsonl"), None).record
    assert (there / "run.html").read_text(encoding="utf-8") == record.page(called=summary["run"])
    game, ending = record.game, record.game.ending
    assert ending is not None
    won = [n for n, seat in enumerate(summary["seats"]) if seat["reward"] > 0]
    assert won == sorted(ending.winners)
    shown: dict[str, dict[int, Any]] = {}
    rows = [json.loads(line) for line in (there / "run.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows[1:]:
        if row["kind"] == "step":
            seen = row["body"]["step"]["observation"]
            news = seen.get("news", [])
            shown.setdefault(row["seat"], {}).update(enumerate(news, start=seen.get("first_news", 0)))
    for player in range(len(record.names)):
        known = [
            {"day": e.day, "phase": e.phase, "kind": e.kind, "data": json.loads(json.dumps(e.data))}
            for e in seen_by(player, game.log)
        ]
        told = shown.get(f"player-{player + 1}", {})
        assert told, "every seat was shown something"
        assert all(known[n] == event for n, event in told.items())
    reasons = [r["body"]["reasoning"] for r in rows[1:] if r["kind"] == "chosen" and r["body"]["reasoning"]]
    assert [text for _, _, text in record.thoughts] == reasons
    assert set(record.played_by) == {"tossim-player"}


def test_agents_with_names_of_their_own_have_the_seats_in_order(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["play", "tossim", "--seed", "3", "--option", "mode=five", "--json"]) == 0
    assert run(["export", "last", "--output", "run.jsonl"]) == 0
    text = (there / "run.jsonl").read_text(encoding="utf-8")
    renamed = text.replace('"player-1"', '"ann"').replace('"player-4"', '"dora"')
    one, other = (record_of_run(map(json.loads, t.splitlines()), "run") for t in (text, renamed))
    assert one.game.ending is not None
    # A name is part of an agent's seed, so these would be other scripted players, of whose beliefs nothing is known.
    assert (one.game.to_json(), one.played_by, one.thoughts) == (other.game.to_json(), other.played_by, other.thoughts)
    assert set(one.found_out) - set(other.found_out) >= {0, 3}


def test_a_run_that_was_cut_off_is_shown_as_far_as_it_went(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["play", "tossim", "--seed", "3", "--option", "mode=five", "--json"]) == 0
    assert run(["export", "last", "--output", "run.jsonl"]) == 0
    lines = [json.loads(line) for line in (there / "run.jsonl").read_text(encoding="utf-8").splitlines()]
    whole = record_of_run(lines, "run")
    for cut in (3, 10, len(lines) // 2):
        part = record_of_run(lines[:cut], "run")
        assert part.game.ending is None
        assert part.game.log == whole.game.log[: len(part.game.log)]
    with pytest.raises(WireError, match="nothing was played yet"):
        record_of_run(lines[:1], "run")
    lines[20] |= {"kind": "chosen", "seat": "player-77", "body": {}}
    with pytest.raises(WireError, match="damaged"):
        record_of_run(lines, "run")


def test_a_tool_that_was_refused_does_not_count_as_used() -> None:
    """In the town it costs nothing; what is written after it stands in the game that is played again as well."""
    options = {"mode": "five", "wills": False, "tool_calls": 1, "first_day": "talk"}
    seats = [{"name": f"player-{n}", "agent": "someone"} for n in range(1, 6)]
    uses: list[tuple[str, dict[str, str]]] = [
        ("view_will", {}),
        ("notebook", {"text": "Counted."}),
        ("notebook", {"text": "One too many."}),
    ]
    record = record_of_run(
        [
            {
                "format": "wsap-run",
                "format_version": 1,
                "game": "tossim",
                "config": {"options": options, "seats": seats},
            },
            {"kind": "episode", "body": {"seed": 1}},
            *(
                {"kind": "chosen", "seat": "player-1", "body": {"action": {"name": name, "parameters": parameters}}}
                for name, parameters in uses
            ),
        ],
        "run",
    )
    assert record.game.waiting == (0,)
    assert record.game.state.players[0].notebook == "Counted."
