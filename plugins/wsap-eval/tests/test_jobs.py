"""Episodes in worker processes: the same scores as in one process, whatever dies."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from wsap_core.cli import main
from wsap_core.errors import StorageError, UsageError
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.seams.model import Price
from wsap_eval.jobs.runner import Progress, Reports
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.records import SCORE_COLUMNS, EpisodeRecord
from wsap_eval.results import read_results
from wsap_eval.run import Evaluation, Played, evaluate
from wsap_llm.kit import BudgetLimits


@pytest.fixture
def hazard(tmp_path: Path) -> str:
    shutil.copy(Path(__file__).with_name("hazard.py"), tmp_path)
    return f"{tmp_path / 'hazard.py'}:Hazard"


def play(
    game: str,
    folder: Path,
    *,
    seeds: int,
    jobs: int = 1,
    first: int = 0,
    progress: Callable[[Progress], None] = lambda so_far: None,
    **options: str,
) -> Played:
    entrants = (Entrant(agent="random"),)
    entry = GameEntry(game=game, label="hazard", options=options, metric="reward")
    suite = Suite(name="jobs", games=(entry,), entrants=entrants, seeds=Seeds(first=first, count=seeds))
    return evaluate(Evaluation(suite, entrants, jobs=jobs), folder, Reports(progress=progress))


def scores(records: tuple[EpisodeRecord, ...]) -> list[list[object]]:
    return [[getattr(record, column) for column in SCORE_COLUMNS] for record in records]


@pytest.mark.slow
def test_workers_give_the_scores_of_one_process_though_one_dies(hazard: str, tmp_path: Path) -> None:
    apart = play(hazard, tmp_path / "apart", seeds=4, jobs=2, once="1", raises="2")
    group = int((tmp_path / "died-of-1").read_text())
    assert group != os.getpgrp(), "Ctrl-C at a terminal does not reach workers"
    here = play(hazard, tmp_path / "here", seeds=4, once="1", raises="2")
    assert scores(apart.records) == scores(here.records)
    assert [r.outcome for r in apart.records] == ["finished", "finished", "failed", "finished"]
    assert "raised KeyError: 'something it forgot'" in apart.records[2].reason


def test_an_episode_whose_line_was_not_written_has_the_same_bytes_of_scores(hazard: str, tmp_path: Path) -> None:
    before = play(hazard, tmp_path, seeds=1).records
    (tmp_path / "episodes.jsonl").unlink()  # as if killed when its run had just ended
    after = play(hazard, tmp_path, seeds=1).records
    assert json.dumps(scores(after), default=asdict) == json.dumps(scores(before), default=asdict)


@pytest.mark.slow
def test_a_failed_episode_counts_what_it_cost_and_a_limit_of_cost_holds_afterwards(hazard: str, tmp_path: Path) -> None:
    own = {"model": "scripted/x", "model.reply": '{"action": "left"}', "plan": "no"}
    entrants = (Entrant(agent="llm", label="m", options=own),)
    entry = GameEntry(game=hazard, label="hazard", options={"raises": "0"}, metric="reward")
    suite = Suite(name="jobs", games=(entry,), entrants=entrants, seeds=Seeds(count=2))
    evaluation = Evaluation(suite, entrants, limits=BudgetLimits(cost=1.0), prices={"scripted/x": Price(1, 1)})
    for _ in range(2):
        broken, whole = evaluate(evaluation, tmp_path).records
        assert (broken.outcome, whole.outcome) == ("failed", "finished")
        assert (broken.calls, whole.calls) == (1, 3)  # the step that broke off is not counted
        assert broken.cost is not None


@pytest.mark.slow
def test_a_pilot_with_episodes_that_failed_exits_with_that_status(
    hazard: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f"[[games]]\ngame = {hazard!r}\noptions = {{ raises = '0' }}\n[[entrants]]\nagent = 'random'\n")
    assert main(["eval", str(file), "--out", str(tmp_path / "out"), "--jobs", "1", "--pilot"]) == 10
    told = capsys.readouterr()
    assert "At this rate" in told.out
    assert "1 episode failed;" in told.err


def test_what_is_cancelled_ends_in_its_own_time_however_deep_it_is() -> None:
    ended: list[str] = []

    async def work(name: str, turns: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(turns):
                await asyncio.sleep(0)
            ended.append(name)

    async def whole() -> None:
        inner = first_error_ends([work("quick", 0), work("slow", 9)])
        task = asyncio.ensure_future(first_error_ends([inner, work("other", 0)]))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(whole())
    assert sorted(ended) == ["other", "quick", "slow"]


@pytest.mark.slow
def test_a_worker_that_is_refused_ends_without_a_word_of_its_own(
    hazard: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="The seed must be a whole number"):
        play(hazard, tmp_path, seeds=2, jobs=2, first=SEED_LIMIT)
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_an_episode_of_which_all_workers_die_is_failed_and_played_by_the_next_command(
    hazard: str, tmp_path: Path
) -> None:
    found = play(hazard, tmp_path / "out", seeds=5, jobs=2, always="1,4").records
    assert [r.outcome for r in found] == ["finished", "failed", "finished", "finished", "failed"]
    assert found[1].reason == "3 worker processes died during it, the last with exit status 3"
    again = play(hazard, tmp_path / "out", seeds=5, jobs=2, always="1,4").records
    assert scores(again) == scores(found)
    assert [a.seconds for a in again if a.outcome == "finished"] == [
        r.seconds for r in found if r.outcome == "finished"
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
@pytest.mark.slow
def test_a_full_disk_ends_the_evaluation_which_goes_on_once_there_is_room(hazard: str, tmp_path: Path) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(so_far: Progress) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # no file of this process can grow

    try:
        with pytest.raises(StorageError, match=r"can't be written|room") as told:
            play(hazard, tmp_path, seeds=3, progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert told.value.exit_code == 6
    before = list(read_results(tmp_path)[1].values())
    assert len(before) == 1
    after = play(hazard, tmp_path, seeds=3).records
    assert before[0] in after  # whichever worker was first
    assert [r.outcome for r in after] == ["finished"] * 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_workers_and_drivers_change_no_score_and_buy_no_answer_twice() -> None:
    script = Path(__file__).with_name("eval_kill.py")
    # A worker, then the driver, then a worker; `nox -s eval-kills` kills a hundred.
    command = [sys.executable, script, "--kills", "3", "--seed", "4", "--steps", "12", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout or "{}")
    assert told.get("problems") == [], done.stderr[-2000:]
    assert told["drivers"] + told["workers"] == 3
