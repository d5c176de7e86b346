"""Results that are there: shown, compared, exported."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import wsap_nexus
from wsap_core.errors import MissingServiceError, UnknownNameError, UsageError, WireError, WsapError
from wsap_eval import read
from wsap_eval.cli import main
from wsap_eval.export.flat import to_csv
from wsap_eval.export.transcript import transcript
from wsap_eval.planning.due import CellLimits
from wsap_eval.planning.suite import Entrant, composed
from wsap_eval.reading import compared, played_of
from wsap_eval.results import Results, read_results
from wsap_eval.run import Evaluation, evaluate

MakeResults = Callable[..., Path]


def wsap_eval(*words: str) -> str:
    """Return what a command prints."""
    result = CliRunner().invoke(main, words)
    if isinstance(result.exception, WsapError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_show_prints_the_table_its_episodes_and_json(make_results: MakeResults) -> None:
    folder = str(make_results())
    assert re.search(r"openai/x .*4 finished, 1 forfeited, 1 failed", wsap_eval("show", folder))
    lines = wsap_eval("show", folder, "--episodes").splitlines()
    assert len([line for line in lines if line.startswith("minigrid")]) == 12
    assert "    30 of 40 decisions had to be forced" in lines
    shown = json.loads(wsap_eval("show", folder, "--json"))
    assert (shown["folder"], shown["standings"]) == (folder, [])
    rows = shown["rows"]
    assert [row["entrant"] for row in rows] == ["random", "openai/x"]
    assert rows[1]["outcomes"] == {"finished": 4, "forfeited": 1, "failed": 1}
    episodes = json.loads(wsap_eval("show", folder, "--episodes", "--json"))
    assert {e["outcome"] for e in episodes} == {"finished", "forfeited", "failed"}


def test_a_folder_without_results_is_one_sentence(tmp_path: Path) -> None:
    for command in (("show",), ("compare",), ("export", "--format", "csv")):
        with pytest.raises(UsageError, match="contains no results of wsap eval"):
            wsap_eval(command[0], str(tmp_path), *command[1:])


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b'{"game": 1}',
        b"[]",
        b"nothing",
        b'{"value": "many"}',
        b'{"outcome": "won"}',
        b'{"seats": [1]}',
    ],
)
def test_a_damaged_line_is_told_of_with_its_number(make_results: MakeResults, line: bytes) -> None:
    path = make_results() / "episodes.jsonl"
    lines = path.read_bytes().splitlines()
    whole = json.loads(lines[2])
    lines[2] = json.dumps(whole | json.loads(line)).encode() if line.startswith(b"{") else line
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(WireError, match=r"Line 3 of '.*episodes.jsonl' is damaged: .*\. Delete it; the command"):
        read_results(path.parent)


def test_episodes_of_games_that_the_suite_no_longer_has_are_left_out(make_results: MakeResults) -> None:
    path = make_results() / "episodes.jsonl"
    lines = path.read_text("utf-8").splitlines()
    lines.append(json.dumps(json.loads(lines[0]) | {"game": "minigrid against nobody"}))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    assert {record.game for record in played_of(path.parent).records} == {"minigrid"}


def test_nothing_is_compared_to_a_baseline_that_was_not_played(make_results: MakeResults) -> None:
    folder = make_results()
    path = folder / "suite.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"baseline": "nobody"}), "utf-8")
    assert all(row.difference is None for row in played_of(folder).rows())
    assert "The baseline nobody was not played in minigrid, so there are no comparisons." in wsap_eval(
        "show", str(folder)
    )
    with pytest.raises(UnknownNameError, match=r"no entrant called 'nobody'. There are: random, openai/x."):
        compared(folder)
    assert compared(folder, baseline="random").baseline == "random"
    (folder / "episodes.jsonl").write_bytes(b"")
    with pytest.raises(UsageError, match="has no episodes yet"):
        compared(folder)


def test_a_difference_without_an_interval_says_why(make_results: MakeResults) -> None:
    printed = wsap_eval("show", str(make_results(("openai/y", "openai/x"), seeds=1)))
    assert "    The difference has no interval: An interval needs at least two common seeds." in printed


@pytest.mark.slow
def test_compare_takes_entrants_and_folders_of_the_same_suite(make_results: MakeResults) -> None:
    before, after = make_results(("random", "openai/x", "openai/y")), make_results(("random", "openai/x"), name="after")
    assert [row.entrant for row in compared(before, baseline="openai/x").rows] == ["random", "openai/y"]
    assert [row.entrant for row in compared(before, ["openai/y"]).rows] == ["openai/y"]
    found = compared(before, [str(after)], baseline="openai/x")
    assert [row.entrant for row in found.rows] == ["random (after)", "openai/x (after)"]
    same = found.rows[1].difference
    assert same is not None
    assert same.verdict in ("tied", "worse")
    assert "difference to random" in wsap_eval("compare", str(before), str(after))
    with pytest.raises(UnknownNameError, match="There is no entrant called 'nobody'"):
        compared(before, ["nobody"])


def _scores(folder: Path, shift: float) -> None:
    """Shift all scores in a folder of results."""
    path = folder / "episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    shifted = [
        line if line["value"] is None else line | {"metrics": {"levels": line["value"] + shift}} for line in lines
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in shifted), "utf-8")


@pytest.mark.slow
def test_folders_of_one_name_are_rows_of_their_own(make_results: MakeResults) -> None:
    folders = [make_results(("random",), name=f"{place}/run") for place in ("A", "B", "C")]
    for number, folder in enumerate(folders):
        _scores(folder, number / 4)
    found = compared(folders[0], [str(folder) for folder in folders[1:]])
    differences = {row.entrant: row.difference.difference for row in found.rows if row.difference}
    assert differences == {"random (B/run)": 0.25, "random (C/run)": 0.5}
    printed = wsap_eval("compare", *map(str, folders))
    assert re.search(r"random \(B/run\) .*\+0.2 ", printed)
    assert re.search(r"random \(C/run\) .*\+0.5 ", printed)


def test_a_row_has_the_episodes_of_one_folder_whatever_entrants_are_called(make_results: MakeResults) -> None:
    first = make_results(("random", "random (B)"), name="A")
    second, third = make_results(("random", "new"), name="B"), make_results(("new",), name="C")
    found = compared(first, [str(second), str(third)])
    assert [row.entrant for row in found.rows] == ["random (B)'", "new (B)", "new (C)"]
    for twice in ([str(second), f"{second}/../B"], [str(first)]):
        with pytest.raises(UsageError, match="is named twice; name each folder once"):
            compared(first, twice)


def test_a_baseline_without_common_seeds_is_one_sentence(make_results: MakeResults) -> None:
    first, other = make_results(), make_results(("openai/z",), name="other", first=100)
    with pytest.raises(UsageError, match=r"openai/z and the baseline random have no seed in common in minigrid"):
        compared(first, [str(other)])
    found = compared(first, ["openai/x", str(other)])
    assert [row.entrant for row in found.rows] == ["openai/x"]
    assert len(found.apart) == 1


def test_folders_of_different_suites_do_not_compare(make_results: MakeResults, tmp_path: Path) -> None:
    other = composed(None, games=["minigrid"], steps=20, entrants=[Entrant(agent="random")])
    with Results(tmp_path / "other", other):
        pass
    with pytest.raises(UsageError, match="different suites or versions"):
        compared(make_results(), [str(tmp_path / "other")])


def test_csv_has_the_figures_of_the_table_and_no_formulas(make_results: MakeResults, tmp_path: Path) -> None:
    folder = make_results()
    wsap_eval("export", str(folder), "--format", "csv", "--out", str(tmp_path / "out"))
    with (tmp_path / "out" / "table.csv").open() as file:
        table = list(csv.DictReader(file))
    rows = played_of(folder).rows()
    assert [float(line["score"]) for line in table] == [row.figure.mean for row in rows]
    assert [line["forfeited"] for line in table] == ["0", "1"]
    with (tmp_path / "out" / "episodes.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 12
    assert to_csv([{"entrant": "=cmd()", "value": -1.0}]) == "entrant,value\n'=cmd(),-1.0\n"


def test_an_evaluation_leaves_its_table(tmp_path: Path) -> None:
    words = (
        "--game",
        "minigrid",
        "--entrant",
        "random",
        "--seeds",
        "2",
        "--steps",
        "5",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
    )
    wsap_eval(*words)
    with (tmp_path / "table.csv").open() as file:
        assert [line["step_limit"] for line in csv.DictReader(file)] == ["2"]


def test_json_lines_hold_whole_records_and_leave_those_of_the_folder_alone(
    make_results: MakeResults, tmp_path: Path
) -> None:
    folder = make_results()
    wsap_eval("export", str(folder), "--format", "jsonl", "--out", str(tmp_path / "out"))
    original = (folder / "episodes.jsonl").read_bytes()
    copied = (tmp_path / "out" / "episodes.jsonl").read_bytes()
    assert sorted(copied.splitlines()) == sorted(original.splitlines())
    assert "episodes" not in wsap_eval("export", str(folder), "--format", "jsonl")
    assert (folder / "episodes.jsonl").read_bytes() == original


@pytest.mark.slow
def test_what_ended_at_a_half_width_reads_back_with_the_interval_that_holds_then(tmp_path: Path) -> None:
    suite = composed(None, games=["minigrid"], steps=5, entrants=[Entrant(agent="random")], seeds=30)
    played = evaluate(Evaluation(suite, suite.entrants, cells=CellLimits(half_width=3.9), in_flight=1), tmp_path)
    assert played.settled
    assert len(read_results(tmp_path)[1]) < 30
    assert played_of(tmp_path).rows() == played.rows()
    assert played_of(tmp_path).missing == 0
    evaluate(Evaluation(suite, suite.entrants), tmp_path)
    assert played_of(tmp_path).settled == {}


def test_data_frames_say_what_to_install_or_have_the_same_columns(make_results: MakeResults) -> None:
    found = read(make_results())
    assert repr(found).startswith("Evaluated('rooms', 12 episodes, 1 missing, ")
    try:
        import pandas as pd
    except ModuleNotFoundError:
        with pytest.raises(MissingServiceError, match=r"pip install .*wsap-eval\[pandas\]'"):
            found.table()
        return
    assert isinstance(found.table(), pd.DataFrame)
    assert list(found.table()["entrant"]) == ["random", "openai/x"]
    assert found.episodes()["value"].count() == 10


def test_an_export_that_cant_be_written_is_one_sentence(make_results: MakeResults, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for form in ("csv", "every-eval-ever"):
        with pytest.raises(UsageError, match="can't be written"):
            wsap_eval("export", str(make_results()), "--format", form, "--out", str(tmp_path / "file"))


def test_the_runtime_says_what_evaluations_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wsap_eval", None)
    with pytest.raises(MissingServiceError, match=r"pip install .*wsap-eval"):
        wsap_nexus.evaluate(games=["minigrid"])


class Recorded:
    """Runs with a conversation; the events are as the log has them."""

    def events(self, run: str, *kinds: str, after: int = -1) -> Iterator[Mapping[str, Any]]:
        def event(kind: str, seat: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"kind": kind, "seat": seat, "time": 5.0, "body": body}

        user = {"role": "user", "content": [{"text": "Look:"}, {"sha256": "ab"}]}
        yield event("model", "row", {"model": "openai/x"})
        yield event("call", "row", {"messages": [{"role": "system", "content": "Play.\x1b[2J"}, user],
                                    "prefill": "{", "reply": {"text": '"go"}', "thinking": "hm"}})  # fmt: skip
        yield event("call", "column", {"messages": [], "reply": {"text": "not mine"}})
        yield event("call", "row", {"messages": [], "reply": {}})


def test_a_transcript_has_each_message_once_and_the_replies_of_its_seats() -> None:
    runs: Any = Recorded()
    found = transcript(runs, "r", {"row"})
    assert [(t.role, t.text, t.thinking, t.model) for t in (next(found), next(found), next(found))] == [
        ("system", "Play. [2J", "", ""),
        ("user", "Look:\n[image]", "", ""),
        ("assistant", '{"go"}', "hm", "openai/x"),
    ]
    with pytest.raises(WireError, match="has a damaged event of a model call"):
        list(found)
