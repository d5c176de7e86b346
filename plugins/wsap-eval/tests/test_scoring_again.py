"""Scores by other metrics, and suites with more games, from what was played."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_core.errors import UsageError, WsapError
from wsap_eval.cli import main
from wsap_eval.reading import compared, played_of
from wsap_eval.results import read_results

GAME = """
from pathlib import Path
from typing import ClassVar

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation
from wsap_core.specs import ScoreMetric

PLAYED = Path(__file__).with_name("played")


def total(episodes):
    return sum(e.reward for e in episodes) / max(1, len(episodes))


def solved(episodes):
    return sum(e.reward >= 2 for e in episodes) / max(1, len(episodes))


def {new}(episodes):
    return sum(10 * e.reward + e.steps for e in episodes) / max(1, len(episodes))


def share(episodes):
    return 1 / sum(e.reward for e in episodes)


class Count:
    game_description = "Count."
    action_space = ActionSpace((ActionDef("low", "Count low."), ActionDef("high", "Count high.")))
    wsap_spec: ClassVar = {{"score_metrics": (
        ScoreMetric("count", "", total, "", 0.0, 100.0), ScoreMetric("solved", "", solved, "", 0.0, 1.0), {more}
    )}}

    def __init__(self, context):
        self.seed = context.seed or 0

    def reset(self, seed=None):
        self.seed = self.seed if seed is None else seed
        return self.observe()

    def observe(self):
        return Observation({{"seed": self.seed}}, step=0)

    def act(self, action):
        with PLAYED.open("a") as file:
            file.write("x")
        reward = self.seed % 3 + (action.name == "high")
        return ActionResult(True, "", reward=float(reward), done=True, observation=Observation(step=1))
"""
LOW, HIGH = "always,action=low,label=low", "always,action=high,label=high"


def wsap_eval(*words: str) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words])
    if isinstance(result.exception, WsapError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


class Played:
    """A folder with a game in a file, its suite and its results."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"
        self.game()

    def game(self, more: str = "") -> None:
        (self.folder / "count.py").write_text(GAME.format(new="weighted", more=more))

    def run(self, *games: str, head: str = "") -> str:
        tables = "".join(f'[[games]]\ngame = "{self.folder}/count.py:Count"\n{game}\n' for game in games)
        (self.folder / "s.toml").write_text(f"{head}\n{tables}[seeds]\ncount = 6\n")
        words = (str(self.folder / "s.toml"), "--entrant", LOW, "--entrant", HIGH)
        return wsap_eval("run", *words, "--jobs", "1", "--out", str(self.out))

    @property
    def steps(self) -> int:
        return len((self.folder / "played").read_text())

    def scores(self) -> dict[str, float | None]:
        return {f"{row.game} {row.entrant} {row.metric}": row.score for row in played_of(self.out).rows()}


@pytest.fixture
def played(tmp_path: Path) -> Played:
    found = Played(tmp_path)
    found.run('label = "a"')
    assert found.steps == 12
    return found


@pytest.mark.slow
def test_another_metric_scores_what_was_played(played: Played) -> None:
    told = wsap_eval("score", str(played.out), "--metric", "solved")
    # Of the seeds 0 to 5 two have a count of 2 by the lower action, four by the higher.
    assert played.scores() == {"a low solved": pytest.approx(1 / 3), "a high solved": pytest.approx(2 / 3)}
    assert "solved" in told
    with (played.out / "table.csv").open() as file:
        assert [(line["metric"], round(float(line["score"]), 3)) for line in csv.DictReader(file)] == [
            ("solved", 0.333), ("solved", 0.667),
        ]  # fmt: skip
    lines = [json.loads(line) for line in (played.out / "episodes.jsonl").read_text().splitlines()]
    assert {line["value"] for line in lines} == {0.0, 1.0}
    played.run('label = "a"\nmetric = "reward"')
    assert played.scores() == {"a low reward": 1.0, "a high reward": 2.0}
    assert played.steps == 12


def test_a_command_that_names_no_metric_and_no_reducer_keeps_those_of_the_folder(played: Played) -> None:
    wsap_eval("score", str(played.out), "--metric", "solved", "--reduce", "max")
    for told in (played.run('label = "a"'), wsap_eval("show", str(played.out))):
        assert "solved, max" in told
    again = wsap_eval("run", str(played.folder / "s.toml"), "--entrant", LOW, "--reduce", "mean", "--jobs", "1",
                      "--out", str(played.out))  # fmt: skip
    assert "solved" in again
    assert "solved, max" not in again
    assert "count" in played.run('label = "a"\nmetric = "count"').splitlines()[1]
    assert played.steps == 12


@pytest.mark.slow
def test_a_metric_that_is_new_since_is_computed_from_what_was_recorded(played: Played) -> None:
    played.game('ScoreMetric("weighted", "", weighted, "", 0.0, 1000.0),')
    wsap_eval("score", str(played.out), "--metric", "a=weighted")
    # Ten times the mean count, and one for the only step.
    assert played.scores() == {"a low weighted": 11.0, "a high weighted": 21.0}
    assert read_results(played.out)[1].popitem()[1].seats[0].metrics.keys() == {"count", "solved", "reward", "weighted"}
    assert played.steps == 12


@pytest.mark.slow
def test_a_metric_without_a_value_for_an_episode_is_named_and_nothing_is_lost(played: Played) -> None:
    played.game('ScoreMetric("share", "", share, "", 0.0, 1.0),')
    told = wsap_eval("score", str(played.out), "--metric", "share")
    assert "2 failed in a metric and not scored: A metric of " in told
    wsap_eval("score", str(played.out), "--metric", "count")
    assert played.scores() == {"a low count": 1.0, "a high count": 2.0}


@pytest.mark.slow
def test_a_game_more_is_played_and_the_others_are_not_again(played: Played) -> None:
    played.run('label = "a"', 'label = "b"\nmetric = "solved"')
    assert played.steps == 24
    assert len(played.scores()) == 4
    played.run('label = "b"')
    assert played.steps == 24
    assert list(played.scores()) == ["b low solved", "b high solved"]
    played.run('label = "a"', 'label = "b"')
    assert played.steps == 24


@pytest.mark.slow
def test_a_game_that_is_played_in_another_way_is_refused_by_name(played: Played) -> None:
    with pytest.raises(UsageError, match="with another value for steps of 'a'; their scores are not comparable"):
        played.run('label = "a"\nsteps = 7')
    with pytest.raises(UsageError, match="with another value for forfeit;"):
        played.run('label = "a"', head="forfeit = 0.5")
    # Not even by way of a suite without the game.
    played.run('label = "b"')
    with pytest.raises(UsageError, match="with other options"):
        played.run('label = "a"\nsteps = 7')


@pytest.mark.slow
def test_what_there_is_not_is_refused_with_what_there_is(played: Played) -> None:
    before = (played.out / "suite.json").read_bytes()
    with pytest.raises(UsageError, match="has no metric 'level'; there are: count, solved, reward"):
        wsap_eval("score", str(played.out), "--metric", "level")
    with pytest.raises(WsapError, match="There are: a"):
        wsap_eval("score", str(played.out), "--metric", "c=count")
    assert (played.out / "suite.json").read_bytes() == before


@pytest.mark.slow
def test_folders_with_different_metrics_are_compared_by_the_first_ones(played: Played, tmp_path: Path) -> None:
    other = Played(tmp_path)
    other.out = tmp_path / "other"
    other.run('label = "a"\nmetric = "solved"', 'label = "b"')
    (row,) = compared(played.out, [str(other.out), "low"], baseline="low").rows[:1]
    assert row.metric == "count"
    assert {r.game for r in compared(played.out, [str(other.out)]).rows} == {"a"}
