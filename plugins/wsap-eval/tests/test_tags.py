"""Tags of suites, cells and episodes, which filter tables and comparisons and stand in all exports."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_core.errors import UsageError
from wsap_eval.cli import main
from wsap_eval.planning.suite import load_suite, tags_of
from wsap_eval.reading import compared, played_of, with_tags

LEVELS = Path(__file__).with_name("levels.py")
SUITE = """
tags = ["paper"]
[[games]]
game = "{levels}:Levels"
label = "levels"
tags = ["short"]
[[games]]
game = "{levels}:Errors"
label = "errors"
[[entrants]]
agent = "always"
options = {{ action = "a10" }}
label = "base"
[[entrants]]
agent = "always"
options = {{ action = "a5" }}
label = "other"
tags = ["weak"]
[seeds]
count = 4
"""


def run(*words: str) -> str:
    result = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(SUITE.format(levels=LEVELS))
    return path


@pytest.mark.slow
def test_tags_of_suite_game_entrant_and_command_filter_and_stand_in_every_export(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(str(suite), "--jobs", "1", "--out", str(out))
    run(str(suite), "--jobs", "1", "--out", str(out), "--seeds", "6", "--tag", "later")
    tags = {(r.game, r.entrant, r.seed): r.tags for r in played_of(out).records}
    assert tags["levels", "other", 0] == ("paper", "short", "weak")
    assert tags["errors", "base", 5] == ("paper", "later")
    with (out / "table.csv").open() as file:
        told = {(row["game"], row["entrant"]): row["tags"] for row in csv.DictReader(file)}
    assert told == {
        ("levels", "base"): "paper short", ("levels", "other"): "paper short weak",
        ("errors", "base"): "paper", ("errors", "other"): "paper weak",
    }  # fmt: skip
    shown = json.loads(run("show", str(out), "--tag", "short", "--tag", "later", "--json"))["rows"]
    assert [(row["game"], row["entrant"], row["outcomes"]) for row in shown] == [
        ("levels", "base", {"finished": 2}), ("levels", "other", {"finished": 2}),
    ]  # fmt: skip
    listed = json.loads(run("show", str(out), "--episodes", "--tag", "weak", "--json"))
    assert len(listed) == 12
    assert {row["entrant"] for row in listed} == {"other"}
    assert len(compared(out, tags=["short"]).rows) == 1
    text = run("compare", str(out), "--tag", "later")
    assert text.count("2 finished") >= 2
    for form in ("csv", "every-eval-ever", "html"):
        run("export", str(out), "--format", form, "--out", str(tmp_path / form))
    with (tmp_path / "csv" / "episodes.csv").open() as file:
        files = {(r["game"], r["entrant"], r["seed"]): r["tags"] for r in csv.DictReader(file)}
    assert files["levels", "other", "5"] == "paper short weak later"
    whole = [json.loads(path.read_text()) for path in (tmp_path / "every-eval-ever").rglob("*-*.json")]
    found = {
        (e["model_info"]["name"], r["evaluation_name"]): r["source_data"]["additional_details"]["tags"]
        for e in whole for r in e["evaluation_results"]
    }  # fmt: skip
    assert found == told_by_entrant(told)
    samples = "".join(path.read_text() for path in (tmp_path / "every-eval-ever").rglob("*_samples.jsonl"))
    told_of = {json.loads(line)["metadata"]["tags"] for line in samples.splitlines()}
    assert told_of >= {"paper short weak later", "paper"}
    assert "<dt>tags</dt><dd>paper, short, weak</dd>" in next((tmp_path / "html").glob("*.html")).read_text()


def told_by_entrant(told: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    return {(entrant, game): tags for (game, entrant), tags in told.items()}


def test_an_inspect_log_has_the_tags(suite: Path, tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    run(str(suite), "--jobs", "1", "--seeds", "1", "--out", str(tmp_path / "out"), "--tag", "later")
    run("export", str(tmp_path / "out"), "--format", "inspect", "--out", str(tmp_path / "logs"))
    (path,) = (tmp_path / "logs").glob("levels_other*.eval")
    found = log.read_eval_log(path)
    assert found.eval.tags == ["paper", "short", "weak", "later"]
    assert found.samples[0].metadata["tags"] == ["paper", "short", "weak", "later"]


@pytest.mark.slow
def test_tags_change_nothing_that_is_played_and_can_change_themselves(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(str(suite), "--jobs", "1", "--out", str(out))
    before, tagged = (out / "episodes.jsonl").read_bytes(), load_suite(str(suite))
    suite.write_text(suite.read_text().replace("short", "long").replace("weak", "strong").replace("paper", "draft"))
    plain = load_suite(str(suite))
    assert (plain.digest, plain.why_apart(tagged)) == (tagged.digest, "")
    run(str(suite), "--jobs", "1", "--out", str(out))
    assert (out / "episodes.jsonl").read_bytes() == before
    assert played_of(out).records[1].tags[0] == "draft"
    with pytest.raises(UsageError, match="No episode has the tag 'short'; there are: draft, long, strong"):
        with_tags(played_of(out), ["short"])


def test_a_tag_is_a_word(suite: Path) -> None:
    assert tags_of(["a", "b", "a"]) == ("a", "b")
    for word in ("two words", "", "a,b", "=1"):
        with pytest.raises(UsageError, match=r"--tag is invalid at tags\.0: it has a forbidden character"):
            tags_of([word])
    suite.write_text(suite.read_text().replace('"short"', '"so short"'))
    with pytest.raises(UsageError, match=r"is invalid at games\.0.tags\.0: it has a forbidden character"):
        load_suite(str(suite))
