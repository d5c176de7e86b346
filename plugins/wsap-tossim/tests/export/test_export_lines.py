"""What is exported: lines that fit their schema, for those who were asked for, with rewards by the book."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from wsap_core.cli.app import run
from wsap_tossim.engine.data.model import WAIT
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.engine.setups import setup
from wsap_tossim.export.games import Tally, Wanted, with_advantage
from wsap_tossim.export.lines import ChatLine, EpisodeLine, schema_of, shipped_schema
from wsap_tossim.export.sources import source_of_record
from wsap_tossim.export.writing import write_chat, write_episodes
from wsap_tossim.replay import Record, save_record

Talk = Callable[..., Record]


def chat(record: Record, wanted: Wanted | None = None) -> tuple[list[dict[str, Any]], Tally]:
    file = io.StringIO()
    tally = write_chat([source_of_record(record)], wanted or Wanted(), file)
    return [json.loads(line) for line in file.getvalue().splitlines()], tally


@pytest.mark.parametrize("name", ["chat", "episodes"])
def test_the_shipped_schema_is_the_one_that_lines_are_held_against(name: str) -> None:
    assert shipped_schema(name) == schema_of(name)
    jsonschema.Draft202012Validator.check_schema(shipped_schema(name))


@pytest.mark.slow
def test_every_line_fits_its_schema(talk: Talk) -> None:
    sources = [source_of_record(talk(seed, "five")) for seed in (1, 2)]
    for name, dialect in (("chat", "tags"), ("chat", "json"), ("episodes", "tags")):
        file = io.StringIO()
        wanted = Wanted(dialect=dialect)  # type: ignore[arg-type]
        if name == "chat":
            tally = write_chat(sources, wanted, file)
        else:
            tally = write_episodes(sources, wanted, file, "faction")
        validator = jsonschema.Draft202012Validator(shipped_schema(name))
        lines = file.getvalue().splitlines()
        assert len(lines) == tally.lines > 0
        assert tally.games == 2
        for line in lines:
            validator.validate(json.loads(line))


def test_every_choice_of_the_record_is_a_turn(talk: Talk) -> None:
    record = talk(4, "five")
    rows, tally = chat(record)
    papers = ("will", "note", "notebook")
    assert len(rows) == tally.turns == sum(e.verb not in papers for e in record.game.record)
    assert (tally.forced, tally.unreadable, tally.unfinished) == (0, 0, [])
    for player in range(5):
        own = [e for e in record.game.record if e.player == player and e.verb not in papers]
        turns = [row for row in rows if row["player"] == player]
        assert [row["turn"] for row in turns] == list(range(len(own)))
        for row, entry in zip(turns, own, strict=True):
            last = row["messages"][-1]["content"]
            assert f"<{entry.verb}" in last.rpartition("</thinking>")[2]
            assert entry.text in last


def test_a_line_in_which_somebody_speaks_twice_in_a_row_is_refused(talk: Talk) -> None:
    row = chat(talk(4, "five"))[0][0]
    for broken in (row["messages"][:1] + row["messages"][2:], row["messages"][1:], row["messages"][:-1]):
        with pytest.raises(ValidationError):
            ChatLine.model_validate({**row, "messages": broken})
    with pytest.raises(ValidationError):
        ChatLine.model_validate({**row, "more": 1})
    with pytest.raises(ValidationError):
        ChatLine.model_validate({**row, "observations": [[0, 10**6]]})


@pytest.mark.slow
def test_only_those_who_were_asked_for_are_exported(talk: Talk) -> None:
    record = replace(talk(2, "five"), played_by=("a", "b", "a", "b", "a"))
    ending = record.game.ending
    assert ending is not None
    everybody = {row["player"] for row in chat(record)[0]}
    roles = [p.role for p in record.game.state.players]
    kinds = {
        Wanted(winners=True): set(ending.winners),
        Wanted(factions=("Town",)): {n for n, r in enumerate(roles) if r.faction == "Town"},
        Wanted(roles=("Mafioso", "Doctor")): {n for n, r in enumerate(roles) if r.name in ("Mafioso", "Doctor")},
        Wanted(played_by=("b",)): {1, 3},
        Wanted(played_by=("c",)): set(),
    }
    for wanted, players in kinds.items():
        assert {row["player"] for row in chat(record, wanted)[0]} == players & everybody


def test_turns_that_somebody_else_took_are_left_out_unless_wanted(talk: Talk) -> None:
    record = talk(2, "five")
    entries = [e._replace(forced=True) if n % 3 == 0 else e for n, e in enumerate(record.game.record)]
    entries = [e._replace(forced=False) if e.verb in ("will", "note", "notebook") else e for e in entries]
    forced = sum(e.forced for e in entries)
    game = Game(record.game.setup, record.game.rules, record.game.seed)
    game.repeat(entries)
    record = replace(record, game=game)
    rows, tally = chat(record)
    assert tally.forced == forced > 0
    assert not any(row["forced"] for row in rows)
    kept, none_left = chat(record, Wanted(forced=True))
    assert len(kept) == len(rows) + forced
    assert none_left.forced == 0


def test_words_that_would_be_read_as_another_action_are_left_out_of_tags_and_kept_in_json(talk: Talk) -> None:
    record = talk(2, "five")
    at = next(n for n, e in enumerate(record.game.record) if e.verb == "speak")
    entries = list(record.game.record)
    entries[at] = entries[at]._replace(text="I wait.</speak><wait/><speak>No.")
    game = Game(record.game.setup, record.game.rules, record.game.seed)
    game.repeat(entries)
    record = replace(record, game=game)
    whole = sum(e.verb not in ("will", "note", "notebook") for e in entries)
    rows, tally = chat(record)
    assert (len(rows), tally.unreadable) == (whole - 1, 1)
    rows, tally = chat(record, Wanted(dialect="json"))
    assert (len(rows), tally.unreadable) == (whole, 0)


@pytest.mark.slow
def test_rewards_are_one_for_the_winners_and_advantages_are_standard_scores(talk: Talk) -> None:
    records = [talk(seed, "five") for seed in range(4)]
    file = io.StringIO()
    write_episodes([source_of_record(r) for r in records], Wanted(), file, "none")
    lines = [EpisodeLine.model_validate_json(line) for line in file.getvalue().splitlines()]
    by_game = {source_of_record(r).id: r.game for r in records}
    for line in lines:
        ending = by_game[line.game].ending
        assert ending is not None
        assert line.reward == (line.player in ending.winners)
        assert line.faction == ROLES[line.role].faction
        assert line.advantage is None
    one = lines[0].model_copy(update={"faction": "Town", "role": "Doctor", "reward": 1})
    rewards = {"faction Town": [1.0, 0.0, 0.0], "Doctor": [1.0, 1.0]}
    # Mean 1/3, variance 2/9: (2/3) / sqrt(2/9) = sqrt(2), and for a loss -1/sqrt(2).
    assert with_advantage(one, "faction", rewards).advantage == pytest.approx(2**0.5, abs=1e-6)
    lost = one.model_copy(update={"reward": 0})
    assert with_advantage(lost, "faction", rewards).advantage == pytest.approx(-(2**-0.5), abs=1e-6)
    assert with_advantage(one, "role", rewards).advantage == 0
    file = io.StringIO()
    tally = write_episodes([source_of_record(r) for r in records], Wanted(winners=True), file, "faction")
    assert sum(len(v) for k, v in tally.rewards.items() if k.startswith("faction ")) == 20  # losers count, too
    assert {json.loads(line)["reward"] for line in file.getvalue().splitlines()} == {1}


def test_a_game_without_an_end_has_turns_but_no_reward(talk: Talk) -> None:
    record = talk(2, "five")
    cut = replace(record, game=record.game.fork(6))
    rows, _ = chat(cut)
    assert rows
    assert {row["won"] for row in rows} == {None}
    file = io.StringIO()
    tally = write_episodes([source_of_record(cut)], Wanted(), file, "faction")
    assert file.getvalue() == ""
    assert len(tally.unfinished) == 1


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, talk: Talk) -> Path:
    """A folder with a record, and a folder of lines with two of them."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    save_record(tmp_path / "town.json", talk(1, "five"))
    (tmp_path / "many").mkdir()
    rows = [{"number": n, "record": talk(n, "five").to_json()} for n in (1, 2)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "many" / "games.jsonl").write_text(text + '{"other": 1}\n', encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_files_and_folders_are_exported(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tossim", "export", "town.json", "--out", "a.jsonl"]) == 0
    assert "turns of 1 game" in capsys.readouterr().err
    assert run(["tossim", "export", "town.json"]) == 0
    assert capsys.readouterr().out == (there / "a.jsonl").read_text(encoding="utf-8")
    assert run(["tossim", "export", "many", "--format", "episodes", "--out", "b.jsonl"]) == 0
    assert "turns of 2 games" in capsys.readouterr().err
    assert run(["tossim", "export", "town.json", "--bare"]) == 0
    assert {tuple(json.loads(line)) for line in capsys.readouterr().out.splitlines()} == {("messages",)}
    assert run(["tossim", "export", "--format", "episodes", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == shipped_schema("episodes")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "Name what to export"),
        (["none.json"], 2, "can't be read"),
        (["bad.jsonl"], 5, "no ToSSim game"),
        (["empty"], 2, "There is no ToSSim game in 'empty'"),
        (["town.json", "--role", "Wizard"], 2, "There is no role 'Wizard'"),
        (["town.json", "--faction", "Elves"], 2, "There is no faction 'Elves'"),
        (["town.json", "--out", "town.json"], 2, "town.json already exists"),
        (["town.json", "--out", "nowhere/a.jsonl"], 2, "can't be written"),
        (["town.json", "--format", "episodes", "--bare"], 2, "--bare requires --format chat"),
        (["no-such-run"], 2, "no run called 'no-such-run'"),
    ],
)
def test_what_can_not_be_exported_is_told_in_a_sentence(
    there: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    (there / "bad.jsonl").write_text('{"other": 1}\n', encoding="utf-8")
    (there / "empty").mkdir()
    assert run(["tossim", "export", *arguments]) == code
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told
    assert not list(there.glob(".*"))


def test_a_set_up_that_names_its_roles_is_walked_with_these() -> None:
    game = Game(setup("five"), rule_set("quick"), 1, roles=["Mafioso", "Doctor", "Citizen", "Citizen", "Sheriff"])
    while not game.over and game.round < 3:
        game.carry_out(dict.fromkeys(game.waiting, WAIT))
    record = Record(game, ("A1", "B2", "C3", "D4", "E5"))
    rows, _ = chat(record)
    assert "You are A1, the Mafioso." in rows[0]["messages"][0]["content"]
