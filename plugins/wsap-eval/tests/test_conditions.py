"""Conditions that change between two commands: nothing is mixed without a word."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_core.errors import UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_eval.cli import main
from wsap_eval.jobs.episodes import Episodes
from wsap_eval.planning.conditions import Conditions
from wsap_eval.planning.plan import Plan, games_of
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.reading import compared, played_of
from wsap_eval.results import read_results

GAME = """
from typing import ClassVar

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation
from wsap_core.specs import ScoreMetric
{imports}

def total(episodes):
    return sum(e.reward for e in episodes) / max(1, len(episodes))


class Count:
    game_description = "Count."
    action_space = ActionSpace((ActionDef("low", "Count low."), ActionDef("high", "Count high.")))
    wsap_spec: ClassVar = {{"score_metrics": (ScoreMetric("count", "", total, "", 0.0, 100.0),)}}

    def __init__(self, context):
        self.seed = context.seed or 0

    def reset(self, seed=None):
        self.seed = self.seed if seed is None else seed
        return self.observe()

    def observe(self):
        return Observation({{"seed": self.seed}}, step=0)

    def act(self, action):
        reward = self.seed % 3 + (action.name == "high") + {bonus}
        return ActionResult(True, "", reward=float(reward), done=True, observation=Observation(step=1))
"""
LOW, HIGH = "always,action=low,label=low", "always,action=high,label=high"


def write_game(folder: Path, bonus: int, *, imports: str = "") -> str:
    (folder / "count.py").write_text(GAME.format(imports=imports, bonus=bonus if not imports else "bonus.BONUS"))
    return f"{folder}/count.py:Count"


def wsap_eval(*words: str) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words])
    if isinstance(result.exception, WsapError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def play(game: str, out: Path, *entrants: str, seeds: int = 6, more: tuple[str, ...] = ()) -> str:
    words = [word for entrant in entrants for word in ("--entrant", entrant)]
    given = ("--game", game, *words, "--seeds", str(seeds), "--jobs", "1", "--out", str(out), *more)
    return wsap_eval("run", *given)


def scores(out: Path) -> dict[str, float | None]:
    return {row.entrant: row.score for row in played_of(out).rows()}


@pytest.mark.slow
def test_an_edited_game_file_is_refused_by_name_before_anything_is_played(tmp_path: Path) -> None:
    out = tmp_path / "out"
    game = write_game(tmp_path, 0)
    play(game, out, LOW)
    before = {path.name: path.read_bytes() for path in out.glob("*.*")}
    write_game(tmp_path, 10)
    with pytest.raises(UsageError, match=r"6 episodes played under other conditions, of 'low' in .*: count.py changed"):
        play(game, out, LOW, seeds=9)
    with pytest.raises(UsageError, match="Play them again with --changed again, keep them in rows of their own with"):
        play(game, out, HIGH)  # a cell of its own, but compared with the other
    assert {path.name: path.read_bytes() for path in out.glob("*.*")} == before
    assert scores(out) == {"low": 1.0}  # it can be read still


@pytest.mark.slow
def test_again_plays_what_was_played_under_other_conditions(tmp_path: Path) -> None:
    out = tmp_path / "out"
    game = write_game(tmp_path, 0)
    play(game, out, LOW, HIGH)
    write_game(tmp_path, 10)
    play(game, out, LOW, HIGH, more=("--changed", "again"))
    assert scores(out) == {"low": 11.0, "high": 12.0}
    play(game, out, LOW, HIGH)  # one condition again
    low = next(iter(read_results(out)[1].values()))
    assert re.fullmatch(r"count\.py [0-9a-f]{12}", low.conditions["game"])


@pytest.mark.slow
def test_apart_makes_rows_of_their_own_that_no_reader_mixes_or_compares(tmp_path: Path) -> None:
    out, form = tmp_path / "out", tmp_path / "form"
    game = write_game(tmp_path, 0)
    play(game, out, LOW, HIGH)
    write_game(tmp_path, 10)
    told = play(game, out, LOW, HIGH, seeds=9, more=("--changed", "apart"))
    found = scores(out)
    # Seeds 0 to 5 under the first, 6 to 8 under the second: the mean of each three seeds is 1 and 2 with the bonus.
    assert list(found.values()) == [1.0, 2.0, 11.0, 12.0]
    names = list(found)
    assert [re.sub("[0-9a-f]{12}", "#", name) for name in names] == [
        "low [count.py #]", "high [count.py #]", "low [count.py #]", "high [count.py #]",
    ]  # fmt: skip
    assert all(name in told for name in names)
    rows = {row.entrant: row for row in played_of(out).rows()}
    assert [rows[name].difference is not None for name in names] == [False, True, False, True]
    assert [rows[name].baseline for name in names] == ["", names[0], "", names[2]]
    for row in (rows[names[1]], rows[names[3]]):
        assert row.difference is not None
        assert row.difference.difference == 1.0
    for kind in ("csv", "every-eval-ever"):
        wsap_eval("export", str(out), "--format", kind, "--out", str(form / kind))
    wsap_eval("export", str(out), "--format", "html", "--out", str(form / "report.html"))
    with (form / "csv" / "table.csv").open() as file:
        assert [(line["entrant"], float(line["score"])) for line in csv.DictReader(file)] == list(found.items())
    with (form / "csv" / "episodes.csv").open() as file:
        assert {line["entrant"] for line in csv.DictReader(file)} == set(names)
    told_by_name = {}
    for path in (form / "every-eval-ever").rglob("*.json"):
        whole = json.loads(path.read_text())
        (result,) = whole["evaluation_results"]
        conditions = result["source_data"]["additional_details"]
        assert "|" not in conditions["game"]
        told_by_name[whole["model_info"]["name"]] = result["score_details"]["score"]
    assert told_by_name == found
    page = (form / "report.html").read_text()
    assert all(name in page for name in names)
    comparison = compared(out, baseline="low")
    assert [row.entrant for row in comparison.rows] == names[1::2]
    assert [row.entrant for row in comparison.base] == names[::2]


@pytest.mark.slow
def test_a_row_without_a_comparable_baseline_says_why(tmp_path: Path) -> None:
    out = tmp_path / "out"
    game = write_game(tmp_path, 0)
    play(game, out, LOW)
    write_game(tmp_path, 10)
    told = play(game, out, HIGH, more=("--changed", "apart", "--baseline", "high"))
    assert "Not compared with the baseline, which was played under other conditions: count.py changed." in told
    with pytest.raises(UsageError, match=r"low .* high were played under different conditions in .*: count.py changed"):
        compared(out, baseline="high")
    shown = json.loads(wsap_eval("show", str(out), "--json"))["rows"]
    assert [row["difference"] for row in shown] == [None, None]


@pytest.mark.slow
def test_an_edited_neighbour_is_told_of_and_the_new_one_is_played(tmp_path: Path) -> None:
    out, beside = tmp_path / "out", tmp_path / "bonus.py"
    (tmp_path / "deep.py").write_text("DEEP = 1\n")
    beside.write_text("from deep import DEEP\nBONUS = DEEP\n")
    game = write_game(tmp_path, 0, imports="import bonus")
    play(game, out, LOW)
    assert scores(out) == {"low": 2.0}
    (tmp_path / "deep.py").write_text("DEEP = 2000 // 100\n")
    with pytest.raises(UsageError, match=r"in .*: deep\.py changed"):
        play(game, out, LOW)
    play(game, out, LOW, more=("--changed", "again"))
    assert scores(out) == {"low": 21.0}
    beside.write_text("BONUS = 40\n")
    with pytest.raises(UsageError, match=r"in .*: bonus\.py changed, deep\.py removed"):
        play(game, out, LOW)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Make a distribution seem to be installed in another version."""
    real = metadata.version

    def install(name: str, version: str) -> None:
        monkeypatch.setattr(metadata, "version", lambda own: version if own == name else real(own))

    return install


@pytest.mark.parametrize("name", ["wsap-minigrid", "wsap-core", "wsap-nexus"])
@pytest.mark.slow
def test_another_version_of_a_distribution_is_told_with_both(
    tmp_path: Path, installed: Callable[[str, str], None], name: str
) -> None:
    steps = ("--steps", "3")
    play("minigrid", tmp_path, "random", seeds=2, more=steps)
    version = metadata.version(name)
    installed(name, "99.0")
    with pytest.raises(UsageError, match=re.escape(f"of 'random' in 'minigrid': {name} {version} → {name} 99.0. Play")):
        play("minigrid", tmp_path, "random", seeds=2, more=steps)
    play("minigrid", tmp_path, "random", seeds=3, more=(*steps, "--changed", "apart"))
    assert len(played_of(tmp_path).rows()) == 2
    installed(name, version)
    with pytest.raises(UsageError, match=re.escape(f"{name} 99.0 → {name} {version}")):
        play("minigrid", tmp_path, "random", seeds=3, more=steps)


@pytest.mark.slow
def test_wsaps_own_model_agent_is_a_condition_of_those_alone_that_ask_models(
    tmp_path: Path, installed: Callable[[str, str], None]
) -> None:
    entrant = 'llm,label=m,model=scripted/x,model.reply={"action":"forward"},plan=no'
    steps = ("--steps", "2")
    play("minigrid", tmp_path / "m", entrant, seeds=1, more=steps)
    play("minigrid", tmp_path / "r", "random", seeds=1, more=steps)
    installed("wsap-llm", "99.0")
    play("minigrid", tmp_path / "r", "random", seeds=2, more=steps)
    with pytest.raises(UsageError, match=r"wsap-llm \S+ → wsap-llm 99.0"):
        play("minigrid", tmp_path / "m", entrant, seeds=1, more=steps)


@pytest.mark.slow
def test_edited_prompts_are_told_of(tmp_path: Path) -> None:
    out, folder = tmp_path / "out", tmp_path / "prompts"
    folder.mkdir()
    (folder / "system.j2").write_text("Play well.")
    entrant = f'llm,label=m,model=scripted/x,model.reply={{"action":"forward"}},plan=no,prompts={folder}'
    play("minigrid", out, entrant, seeds=1, more=("--steps", "2"))
    (record,) = read_results(out)[1].values()
    (folder / "system.j2").write_text("Play badly.")
    with pytest.raises(UsageError, match=f"prompts {record.conditions['prompts']} → prompts "):
        play("minigrid", out, entrant, seeds=2, more=("--steps", "2"))


def serve_as(out: Path, model: str, seeds: range) -> None:
    """Let a server have reported this model for seeds of the folder."""
    path = out / "episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["seed"] in seeds:
            line["conditions"]["served"] = model
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.slow
def test_another_model_behind_the_same_address_is_a_row_of_its_own_and_refused_the_next_time(tmp_path: Path) -> None:
    game = write_game(tmp_path, 0)
    out = tmp_path / "out"
    play(game, out, LOW, HIGH)
    serve_as(out, "m-old fp_1", range(3))
    serve_as(out, "m-old fp_2", range(1))  # a fingerprint of the same model
    assert set(scores(out)) == {"low", "high"}
    serve_as(out, "m-new fp_3", range(4, 6))
    assert set(scores(out)) == {f"{who} [served {model}]" for who in ("low", "high") for model in ("m-old", "m-new")}
    rows = {row.entrant: row for row in played_of(out).rows()}
    assert rows["high [served m-new]"].baseline == "low [served m-new]"
    with pytest.raises(UsageError, match="served m-old → served m-new"):
        play(game, out, LOW, HIGH)


@pytest.mark.slow
def test_results_without_conditions_are_one_kind_and_not_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    game = write_game(tmp_path, 0)
    play(game, out, LOW, HIGH)
    path = out / "episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["conditions"] = {"legal": "bound", "wsap": "0.0.9"}
        line["run"] = line["run"].rpartition("-")[0]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert scores(out) == {"low": 1.0, "high": 2.0}
    write_game(tmp_path, 10)
    play(game, out, LOW, HIGH, seeds=9)
    assert scores(out) == {
        "low [conditions unknown]": 1.0, "high [conditions unknown]": 2.0, "low": 11.0, "high": 12.0,
    }  # fmt: skip
    differences = {row.entrant: row.baseline for row in played_of(out).rows()}
    assert differences["high"] == "low"
    assert differences["high [conditions unknown]"] == "low [conditions unknown]"


@pytest.mark.slow
def test_folders_played_under_different_conditions_are_not_compared(tmp_path: Path) -> None:
    game = write_game(tmp_path, 0)
    play(game, tmp_path / "a", LOW)
    play(game, tmp_path / "b", LOW)
    assert len(compared(tmp_path / "a", [str(tmp_path / "b")]).rows) == 1
    write_game(tmp_path, 10)
    play(game, tmp_path / "c", LOW)
    with pytest.raises(UsageError, match=r"were played under different conditions in .*: count\.py changed"):
        compared(tmp_path / "a", [str(tmp_path / "c")])


@pytest.mark.slow
def test_a_baseline_in_rows_of_its_own_is_that_of_the_first_folder(tmp_path: Path) -> None:
    game = write_game(tmp_path, 0)
    play(game, tmp_path / "other", LOW, HIGH)
    play(game, tmp_path / "out", LOW, seeds=3)
    write_game(tmp_path, 10)
    play(game, tmp_path / "out", LOW, more=("--changed", "apart"))
    found = compared(tmp_path / "out", [str(tmp_path / "other")])
    assert all(row.entrant.startswith("low [") for row in found.base), [row.entrant for row in found.base]
    rows = {row.entrant: row for row in found.rows}
    assert rows.keys() == {"low (other)", "high"}
    for row in rows.values():
        assert row.baseline in {base.entrant for base in found.base}
        assert row.difference is not None
        assert row.difference.seeds == 3


@pytest.mark.slow
def test_the_table_is_that_of_the_folder_whatever_was_asked_for_last(tmp_path: Path) -> None:
    out = tmp_path / "out"
    game = write_game(tmp_path, 0)
    play(game, out, LOW, HIGH)
    told = play(game, out, LOW, seeds=2, more=("--json",))
    assert json.loads(told)["rows"] == json.loads(wsap_eval("show", str(out), "--json"))["rows"]
    with (out / "table.csv").open() as file:
        assert [(line["entrant"], line["seeds"]) for line in csv.DictReader(file)] == [("low", "6"), ("high", "6")]
    wsap_eval("export", str(out), "--format", "html")
    assert "6 from 0, each played once" in (out / "report.html").read_text()


def test_a_file_edited_while_it_is_played_changes_no_episode_of_the_command(tmp_path: Path) -> None:
    game, out = write_game(tmp_path, 0), tmp_path / "out"
    source = tmp_path / "count.py"
    edits = "\n\nclass Edits(Count):\n    def act(self, action):\n        edit()\n        return super().act(action)\n"
    whole = source.read_text() + edits
    whole += "\n\ndef edit():\n    from pathlib import Path\n\n    here = Path(__file__)\n"
    whole += '    here.write_text(here.read_text().replace("+ 0", "+ 50"))\n'
    source.write_text(whole)
    play(game.replace(":Count", ":Edits"), out, LOW)
    assert "+ 50" in source.read_text()
    assert [record.value for record in played_of(out).records] == [0, 1, 2, 0, 1, 2]
    with pytest.raises(UsageError, match=r"played under other conditions.*count\.py changed"):
        play(game.replace(":Count", ":Edits"), out, LOW, seeds=7)


def test_a_process_that_begins_after_an_edit_refuses_to_play(tmp_path: Path) -> None:
    game, host = GameEntry(game=write_game(tmp_path, 0), label="count"), PluginHost.discovered()
    entrants = (Entrant(agent="always", options={"action": "low"}),)
    suite = Suite(name="edited", games=(game,), entrants=entrants, seeds=Seeds(count=2))
    games = games_of(suite, host)
    first, second = Plan(suite, games, entrants, host, Conditions(games, host).added)
    work = Episodes(suite, str(tmp_path / "runs.db"), limited=False)
    with work.opened() as begin:
        assert asyncio.run(begin(first)).value == 0
    write_game(tmp_path, 50)
    with work.opened() as begin, pytest.raises(UsageError, match=r"'count' is no longer .*: count\.py changed\."):
        asyncio.run(begin(second))
