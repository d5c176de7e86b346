"""Limits of an episode: of seconds, tokens, calls and cost, at which it ends with what it has."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "wsap-llm" / "tests"))

from llm_server.says import Say
from llm_server.server import ModelServer

from wsap_core.errors import UsageError
from wsap_core.seams.model import Price
from wsap_eval.cli import main
from wsap_eval.commands.spending import all_limits, cell_limits, episode_limits
from wsap_eval.planning.suite import Entrant, EpisodeLimits, GameEntry, Limits, Seeds, Suite
from wsap_eval.reading import played_of
from wsap_eval.records import EpisodeRecord
from wsap_eval.results import Results, read_results
from wsap_eval.run import Evaluation, evaluate
from wsap_eval.tables.shown import cells, notes

LENGTH = 6
REPLY = '{"action": "wait"}'


class Ticking:
    """A clock that goes on by a second whenever it is looked at, and whose waits end only when `over` is called."""

    def __init__(self) -> None:
        self.time, self.waiting = 0.0, list[asyncio.Event]()
        self.asked = list[float]()

    def now(self) -> float:
        self.time += 1
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.waiting.append(event := asyncio.Event())
        await event.wait()


class Until(Ticking):
    """A clock whose waits end once something happened."""

    def __init__(self, happened: threading.Event) -> None:
        super().__init__()
        self._happened = happened

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        assert await asyncio.to_thread(self._happened.wait, 60)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ModelServer(Say(REPLY)) as found:
        yield found


def echo(limit: EpisodeLimits, *entrants: Entrant, seeds: int = 2) -> Evaluation:
    entry = GameEntry(game="echo", options={"length": LENGTH})
    suite = Suite(
        name="limited", games=(entry,), entrants=entrants, seeds=Seeds(count=seeds), limit=Limits(episode=limit)
    )
    return Evaluation(suite, entrants)


def model(server: ModelServer) -> Entrant:
    return Entrant(
        agent="openai/qwen3:8b", label="m", options={"model.base_url": server.base_url, "style": "json", "plan": "no"}
    )


def ends(records: Sequence[EpisodeRecord]) -> list[tuple[str, str, int]]:
    return [(record.outcome, record.limit, record.steps) for record in records]


def test_an_episode_ends_at_its_limit_of_seconds_with_what_it_has(tmp_path: Path) -> None:
    evaluation = replace(echo(EpisodeLimits(seconds=6), Entrant(agent="random")), clock=Ticking())
    played = evaluate(evaluation, tmp_path)
    assert all(outcome == "limit" and 0 < steps < LENGTH for outcome, _, steps in ends(played.records)), played.records
    assert {(r.limit, r.reason) for r in played.records} == {("seconds", "ended at the limit of 6 seconds")}
    assert all(r.value is not None and r.value == r.metrics[played.rows()[0].metric] for r in played.records)
    (row,) = played.rows()
    assert row.outcomes == {"limit": 2}
    assert cells(row)[-1] == "2 at a limit"
    assert "Episodes that ended at a limit count as they stood: 2 at that of seconds." in list(notes(row))


def test_an_episode_that_is_over_in_time_has_finished(tmp_path: Path) -> None:
    clock = Ticking()
    evaluation = replace(echo(EpisodeLimits(seconds=1000), Entrant(agent="random")), clock=clock)
    assert ends(evaluate(evaluation, tmp_path).records) == [("finished", "", LENGTH)] * 2
    assert all(990 < seconds <= 1000 for seconds in clock.asked)


@pytest.mark.slow
def test_seconds_end_an_episode_while_its_model_is_thinking_and_what_that_cost_is_said_to_be_unknown(
    server: ModelServer, tmp_path: Path
) -> None:
    third, asked = threading.Event(), list[object]()

    def says(body: object) -> Say:
        asked.append(body)
        if len(asked) < 3:
            return Say(REPLY)
        third.set()
        return Say(REPLY, wait=True)

    server.default = says
    evaluation = replace(echo(EpisodeLimits(seconds=30), model(server), seeds=1), clock=Until(third))
    played = evaluate(evaluation, tmp_path)
    (record,) = played.records
    assert (record.outcome, record.limit, record.steps, record.calls, record.unanswered) == (
        "limit",
        "seconds",
        2,
        2,
        1,
    )
    (row,) = played.rows()
    assert "1 call was in flight at a limit; what the provider billed for it is unknown" in " ".join(notes(row))
    again = evaluate(evaluation, tmp_path)
    assert (len(asked), again.records) == (3, played.records), "it is not played again"


@pytest.mark.parametrize("kind", ["tokens", "calls", "cost"])
@pytest.mark.slow
def test_an_episode_ends_before_the_decision_after_its_limit_is_reached(
    server: ModelServer, tmp_path: Path, kind: str
) -> None:
    evaluation = replace(echo(EpisodeLimits(), model(server)), prices={"openai/qwen3:8b": Price(1.0, 1.0)})
    entry = evaluation.suite.games[0].model_copy(update={"steps": 3})
    three = evaluate(replace(evaluation, suite=evaluation.suite.model_copy(update={"games": (entry,)})), tmp_path / "a")
    record = three.records[0]
    tokens = record.prompt_tokens + record.completion_tokens
    assert record.cost == pytest.approx(tokens * 1e-6)
    for most, steps in ((0.9, 3), (1.1, 4)):  # times what three decisions take
        taken = {"tokens": int(most * tokens), "calls": 3 if most < 1 else 4, "cost": most * tokens * 1e-6}[kind]
        limits = EpisodeLimits.model_validate(dict(episode_limits([f"episode.{kind}={taken}"])))
        suite = evaluation.suite.model_copy(update={"limit": Limits(episode=limits)})
        found = evaluate(replace(evaluation, suite=suite), tmp_path / f"{most}")
        assert ends(found.records) == [("limit", kind, steps)] * 2
        assert {record.calls for record in found.records} == {steps}


def test_a_limit_of_an_unknown_cost_is_refused_by_name(server: ModelServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"A limit of \$1 per episode can't be enforced"):
        evaluate(echo(EpisodeLimits(cost=1.0), model(server)), tmp_path)


@pytest.mark.slow
def test_what_was_spent_before_an_interruption_counts(server: ModelServer, tmp_path: Path) -> None:
    evaluation = echo(EpisodeLimits(calls=4), model(server), seeds=1)
    stopped = replace(evaluation, limits=all_limits(["calls=2"]))
    assert evaluate(stopped, tmp_path).limit
    (record,) = evaluate(evaluation, tmp_path).records
    assert (record.outcome, record.steps, record.calls) == ("limit", 4, 4)
    with Results(tmp_path, evaluation.suite) as results:  # killed after the run, before the episode was written
        results.episodes.clear()
        (tmp_path / "episodes.jsonl").write_text("")
    (again,) = evaluate(evaluation, tmp_path).records
    assert (again.outcome, again.steps, again.trajectory) == ("limit", 4, record.trajectory)


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words))
    assert result.exception is None or isinstance(result.exception, SystemExit | UsageError), result.output
    return result.exit_code, result.output + (str(result.exception) if result.exception else "")


@pytest.mark.slow
def test_limits_of_a_suite_and_of_the_command_are_in_all_outputs_and_other_ones_are_refused(tmp_path: Path) -> None:
    suite, out = tmp_path / "s.toml", tmp_path / "out"
    suite.write_text(
        '[[games]]\ngame = "echo"\noptions = { length = 6 }\n[limit]\nepisode.seconds = 1e-9\nepisode.tokens = 5\n'
        "[seeds]\ncount = 2\n"
    )
    code, told = run(str(suite), "--entrant", "random", "--jobs", "1", "--out", str(out))
    assert code == 0
    assert "2 at a limit" in told
    assert played_of(out).suite.limit.episode == EpisodeLimits(seconds=1e-9, tokens=5)
    with (out / "table.csv").open() as file:
        assert [(r["limit"], r["finished"], r["forfeited"]) for r in csv.DictReader(file)] == [("2", "0", "0")]
    assert "limit" in run("show", str(out), "--episodes")[1]
    listed = json.loads(run("show", str(out), "--episodes", "--json")[1])
    assert {(line["outcome"], line["limit"]) for line in listed} == {("limit", "seconds")}
    run("export", str(out), "--format", "every-eval-ever", "--out", str(tmp_path / "every"))
    (whole,) = (tmp_path / "every").rglob("*-*.json")
    (result,) = json.loads(whole.read_text())["evaluation_results"]
    assert result["score_details"]["details"]["episodes_limit"] == "2"
    assert result["source_data"]["additional_details"]["limit.episode.tokens"] == "5"
    run("export", str(out), "--format", "html", "--out", str(tmp_path / "r.html"))
    assert "an episode ends at</dt><dd>1e-09 seconds, 5 tokens" in (tmp_path / "r.html").read_text()
    assert {r.outcome for r in read_results(out)[1].values()} == {"limit"}
    words = (str(suite), "--entrant", "random", "--jobs", "1", "--out", str(out), "--limit", "episode.seconds=9")
    code, told = run(*words)
    assert code
    assert "with another value for the limit of an episode" in told


def test_an_inspect_log_says_which_limit_ended_a_sample(tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    out = tmp_path / "out"
    for name, limit in (("out", "1e-9"), ("steps", "1000")):
        words = ["--game", "echo", "--entrant", "random", "--seeds", "1", "--steps", "2", "--jobs", "1"]
        assert run(*words, "--limit", f"episode.seconds={limit}", "--out", str(tmp_path / name))[0] == 0
        run("export", str(tmp_path / name), "--format", "inspect", "--out", str(tmp_path / name / "logs"))
    (path,) = (out / "logs").glob("*.eval")
    sample = log.read_eval_log(path).samples[0]
    assert (sample.limit.type, sample.limit.limit, sample.metadata["outcome"]) == ("time", 1e-9, "limit")
    (path,) = (tmp_path / "steps" / "logs").glob("*.eval")
    sample = log.read_eval_log(path).samples[0]
    assert (sample.limit.type, sample.limit.limit, sample.metadata["outcome"]) == ("custom", 2, "step_limit")


def test_words_of_limits_are_of_one_scope_each_and_checked() -> None:
    words = ["cost=5", "cell.calls=7", "episode.seconds=0.5", "episode.tokens=9"]
    assert dict(episode_limits(words)) == {"seconds": 0.5, "tokens": 9}
    assert (all_limits(words).cost, cell_limits(words, None, pilot=False).calls) == (5, 7)
    for word, why in (
        ("episode.seconds=0", "must be a number above 0, not '0'"),
        ("episode.seconds=nan", "must be a number above 0"),
        ("episode.tokens=1.5", "--limit episode.tokens must be a whole number"),
        (
            "episode.minutes=5",
            r"requires episode\.\[seconds\|tokens\|calls\|cost\]=N, such as episode\.seconds=60, not 'minutes=5'",
        ),
    ):
        with pytest.raises(UsageError, match=why):
            episode_limits([word])
    with pytest.raises(UsageError, match=r"--limit cell\.calls must be a whole number"):
        cell_limits(["cell.calls=0"], None, pilot=False)
    with pytest.raises(UsageError, match="--limit calls must be a whole number"):
        all_limits(["calls=0"])
    with pytest.raises(UsageError, match=r"sets episode\.seconds twice"):
        episode_limits(["episode.seconds=1", "episode.seconds=2"])


def test_an_episode_that_its_game_ends_at_a_limit_of_its_own_has_finished_and_says_so(tmp_path: Path) -> None:
    short, endless = GameEntry(game="crafter", options={"length": 4}), GameEntry(game="echo", options={"length": 4})
    suite = Suite(name="short", games=(short, endless), entrants=(Entrant(agent="random"),), seeds=Seeds(count=2))
    played = evaluate(Evaluation(suite, suite.entrants), tmp_path)
    assert {(record.game, record.outcome, record.seats[0].truncated) for record in played.records} == {
        ("crafter", "finished", True),
        ("echo", "finished", False),
    }
    _, kept = read_results(tmp_path)
    assert sum(record.seats[0].truncated for record in kept.values()) == 2
    told = {row.game: list(notes(row)) for row in played.rows()}
    assert "2 episodes ended at the game's own limit of steps or time." in told["crafter"]
    assert not any("own limit" in note for note in told["echo"])
