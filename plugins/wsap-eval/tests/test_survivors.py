"""Means over what is left: agents that raise, games and providers that break."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_core.errors import AgentError, CutOffError, PluginError, WorldError
from wsap_core.seams.model_errors import TransientError
from wsap_eval.cli import main
from wsap_eval.play import fault_of
from wsap_eval.reading import played_of
from wsap_eval.results import read_results
from wsap_eval.tables.shown import notes

LEVELS = Path(__file__).with_name("levels.py")


def run(game: str, out: Path, *entrants: str, seeds: int = 12) -> tuple[str, BaseException | None]:
    words = [word for entrant in entrants for word in ("--entrant", entrant)]
    given = ["--game", f"{LEVELS}:{game}", *words, "--seeds", str(seeds), "--jobs", "1", "--out", str(out)]
    result = CliRunner().invoke(main, given)
    return result.output, result.exception


@pytest.mark.slow
def test_an_agent_that_raises_forfeits_and_is_not_played_again(tmp_path: Path) -> None:
    told, error = run("Levels", tmp_path, "always,action=a10,label=base", f"{LEVELS}:Bold,label=bold")
    assert error is None, told
    base, bold = played_of(tmp_path).rows()
    # Seeds 0, 3, 6 and 9 of 12 are forfeited and count as 0; a15 solves the others.
    assert bold.outcomes == {"finished": 8, "forfeited": 4}
    assert (bold.score, base.score, bold.worst) == (pytest.approx(8 / 12), pytest.approx(10 / 12), 0.0)
    lost = [r for r in read_results(tmp_path)[1].values() if r.outcome == "forfeited"]
    assert {r.seed for r in lost} == {0, 3, 6, 9}
    assert all("raised ZeroDivisionError: too hard" in r.reason and r.fault == "" for r in lost)
    assert "4 forfeited: The agent" in told
    assert "4 forfeited:" in CliRunner().invoke(main, ["show", str(tmp_path)]).output
    before = (tmp_path / "episodes.jsonl").read_bytes()
    again, error = run("Levels", tmp_path, "always,action=a10,label=base", f"{LEVELS}:Bold,label=bold")
    assert error is None, again
    assert (tmp_path / "episodes.jsonl").read_bytes() == before
    for form in ("csv", "html", "every-eval-ever"):
        words = ["export", str(tmp_path), "--format", form, "--out", str(tmp_path / form)]
        assert CliRunner().invoke(main, words).exit_code == 0


UNFIT = """
import asyncio, math, sys
from wsap_core import Action

class Unfit:
    def __init__(self, context): ...
    def initialize(self, game_desc, action_space): ...
    def plan(self, goals): return []
    def reflect(self, result): ...
    def decide(self, observation): return Action("a10")

class Exits(Unfit):
    def decide(self, observation): sys.exit(3)

class Cancelled(Unfit):
    async def decide(self, observation):
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task

class NotJson(Unfit):
    def decide(self, observation): return Action("a10", {"x": math.nan})

class TooDeep(Unfit):
    def decide(self, observation):
        value = []
        for _ in range(5000):
            value = [value]
        return Action("a10", {"x": value})

class TooManyDigits(Unfit):
    def decide(self, observation): return Action("a10", {"x": 10**5000})

class SlowAtOnce(Unfit):
    def initialize(self, game_desc, action_space): raise TimeoutError("no answer")

class SlowAfterwards(Unfit):
    def reflect(self, result): raise TimeoutError("no answer")
"""


@pytest.mark.parametrize(
    "how", ["Exits", "Cancelled", "NotJson", "TooDeep", "TooManyDigits", "SlowAtOnce", "SlowAfterwards"]
)
def test_an_agent_that_ends_in_any_other_way_forfeits_too(tmp_path: Path, how: str) -> None:
    (tmp_path / "unfit.py").write_text(UNFIT)
    told, error = run("Levels", tmp_path / "out", f"{tmp_path / 'unfit.py'}:{how},label=x", seeds=2)
    assert error is None, told
    (row,) = played_of(tmp_path / "out").rows()
    assert row.outcomes == {"forfeited": 2}
    assert all("seat-1" in record.reason for record in played_of(tmp_path / "out").records)


@pytest.mark.slow
def test_a_broken_game_is_named_its_mean_is_of_the_rest_and_repeating_says_what_does_not_pass(tmp_path: Path) -> None:
    entrants = ("always,action=a10,label=base", "always,action=a5,label=other")
    told, error = run("Faulty", tmp_path, *entrants)
    assert isinstance(error, CutOffError)
    assert str(error) == "6 episodes failed; run the same command again to repeat."
    assert "3 failed in the game and not scored:" in told
    assert "The mean is of 9 of 12 seeds" in told
    # Of the seeds 0 to 11 without 3, 7 and 11 the first ten have eight.
    assert f"over the same seeds the baseline has {8 / 9:.2f}" in told
    _, error = run("Faulty", tmp_path, *entrants)
    assert isinstance(error, CutOffError)
    assert "6 episodes failed as before, and won't pass until the cause is mended" in str(error)
    found = read_results(tmp_path)[1].values()
    assert {(r.fault, r.failed_before) for r in found if r.outcome == "failed"} == {("game", 1)}
    compared = CliRunner().invoke(main, ["compare", str(tmp_path)]).output
    assert "9 finished, 3 failed" in compared
    assert re.search(r"The baseline base in .*: 9 finished, 3 failed. 3 failed in the game", compared)
    json_rows = json.loads(CliRunner().invoke(main, ["show", str(tmp_path), "--json"]).stdout)["rows"]
    assert [row["seeds"] for row in json_rows] == [12, 12]


def test_errors_of_an_opponent_and_of_providers_are_told_apart() -> None:
    errors = {
        AgentError.of("row", "raised"): "opponent",
        TransientError("busy"): "provider",
        WorldError("broken"): "game",
        PluginError("missing"): "",
    }
    assert {fault_of(error) for error in errors} == set(errors.values())
    assert all(fault_of(error) == fault for error, fault in errors.items())
    assert AgentError.of("row", "raised").seat == "row"


@pytest.mark.slow
def test_an_opponent_that_raises_is_no_forfeit_of_the_entrant(tmp_path: Path) -> None:
    suite, out = tmp_path / "s.toml", tmp_path / "out"
    (tmp_path / "rude.py").write_text(
        "class Rude:\n"
        "    def __init__(self, context): ...\n"
        "    def initialize(self, game_desc, action_space): ...\n"
        "    def decide(self, observation): raise RuntimeError('never')\n"
        "    def reflect(self, result): ...\n"
        "    def plan(self, goals): return []\n"
    )
    suite.write_text(f'[[games]]\ngame = "matrix"\nagainst = "{tmp_path}/rude.py:Rude"\n[seeds]\ncount = 2\n')
    words = [str(suite), "--entrant", "random", "--entrant", f"{tmp_path}/rude.py:Rude,label=rude"]
    result = CliRunner().invoke(main, [*words, "--jobs", "1", "--out", str(out)])
    assert isinstance(result.exception, CutOffError), result.output
    random_row, rude = played_of(out).rows()
    assert random_row.outcomes == {"failed": 2}
    assert "2 failed in the opponent and not scored: " in " ".join(notes(random_row))
    # Both raise; the entrant, which is asked in the first seat, is at fault where it was the first.
    assert set(rude.outcomes) <= {"forfeited", "failed"}
