"""Models over HTTP: what they may take, what they took, and what they believe; with a server that counts."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from math import log
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from llm_server import Card, ModelServer, Say

from wsap_core.errors import UsageError
from wsap_tossim.cli.export import export
from wsap_tossim.cli.tournament import tournament

pytest.importorskip("wsap_nexus", reason="needs the runtime (wsap-nexus)")
GAME = ("--mode", "five", "--rules", "quick", "--option", "longest_game=2", "--seed", "2", "--resamples", "5")
FIELD = ("one=scripted", "bot=openai/fake")
TOWN = ("Town Investigative", "Town Protective")
TABLES = ("games.csv", "ratings.csv", "spending.csv", "summary.json", "report.html")
PRICE = ("--price", "openai/fake=1/2")
CHAT = "/v1/chat/completions"


def is_question(body: Any) -> bool:
    return "a question that is not part of the game" in body["messages"][-1]["content"]


def says(body: Any) -> Say:
    """Wait in the game, and hold everybody for an enemy with 20 %."""
    if not is_question(body):
        return Say(json.dumps({"action": "wait", "params": {}, "reasoning": "hm"}))
    names = body["response_format"]["json_schema"]["schema"]["required"]
    return Say(json.dumps(dict.fromkeys(names, 20)))


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> None:
    for name in [*os.environ]:
        if name.startswith(("WSAP_", "OPENAI_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    server.default = says
    server.models = {"fake": Card(context=32_768)}


def asked(server: ModelServer) -> list[Any]:
    return [r.body for r in server.requests if r.path == CHAT]


def play(out: Path, *more: str, games: int = 2) -> Result:
    return CliRunner().invoke(tournament, [*FIELD, *GAME, "--games", str(games), "--out", str(out), *more])


def lines(folder: Path, *, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return the games by number, without the runs' ids, which are drawn."""
    found = [json.loads(line) for line in (folder / "games.jsonl").read_text().splitlines()]
    return sorted(({**line, **dict.fromkeys(("run", *without))} for line in found), key=lambda line: line["game"])


@pytest.mark.slow
def test_beliefs_are_asked_for_when_the_game_is_over_and_change_nothing_in_it(
    tmp_path: Path, server: ModelServer
) -> None:
    assert play(tmp_path / "silent").exit_code == 0
    silent = asked(server)
    server.requests.clear()
    done = play(tmp_path / "asked", "--beliefs")
    assert done.exit_code == 0, done.output
    bodies = asked(server)
    questions = [body for body in bodies if is_question(body)]
    assert [body for body in bodies if not is_question(body)] == silent, "every prompt of the game, byte for byte"
    for game, plain in zip(lines(tmp_path / "asked"), lines(tmp_path / "silent"), strict=True):
        assert game["record"]["game"] == plain["record"]["game"]
        assert game["usage"] == plain["usage"]
        bots = [n for n, label in enumerate(game["entrants"]) if label == "bot"]
        said = [(day, who, evil) for day, who, evil in game["record"]["beliefs"] if who in bots]
        assert all(set(evil.values()) == {0.2} for _, _, evil in said)
        assert [row for row in plain["record"]["beliefs"] if row[1] in bots] == []
        assert sum(game["asked"][n][0] for n in bots) == len(said)
        town = [n for n in bots if game["roles"][n] != "Mafioso"]
        for n in town:
            sums = game["measures"][n]
            enemies = sum(1 for _, who, _ in said if who == n)  # the one Mafioso, once for each day
            assert sums["loss"] == pytest.approx(-enemies * log(0.2) - (sums["beliefs"] - enemies) * log(0.8))
            assert sums["brier"] == pytest.approx(enemies * 0.64 + (sums["beliefs"] - enemies) * 0.04)
            assert sums["unanswered"] == 0
    assert len(questions) == sum(row[0] for g in lines(tmp_path / "asked") for row in g["asked"] if row)
    (first, *_) = questions
    assert first["messages"][0]["role"] == "system"
    assert first["messages"][0] in [body["messages"][0] for body in silent], "who it is, in the words of its game"
    assert "bot used" in done.output
    assert f"{len(questions)} of them for beliefs" in done.output


@pytest.mark.parametrize(("more", "bound"), [((), True), (("--agent-option", "constrain=no"), False)])
def test_questions_are_put_as_the_game_is_played(
    more: tuple[str, ...], bound: bool, tmp_path: Path, server: ModelServer
) -> None:
    server.default = lambda body: Say('{"Ann": 5}') if is_question(body) else says(body)
    manner = ("--agent-option", "max_tokens=77", "--agent-option", "temperature=0.1", *more)
    assert play(tmp_path, "--beliefs", *manner, games=1).exit_code == 0
    questions = [body for body in asked(server) if is_question(body)]
    assert questions
    for body in questions:
        assert ("response_format" in body) is bound
        assert body["temperature"] == 0.1
        assert body["max_tokens"] == 40 + 12 * 4 or body["max_tokens"] == 77, "as many as an answer needs, or more"


@pytest.mark.slow
def test_answers_that_can_not_be_read_are_counted_as_missing(tmp_path: Path, server: ModelServer) -> None:
    server.default = lambda body: Say("I would rather not say.") if is_question(body) else says(body)
    assert play(tmp_path, "--beliefs", games=1).exit_code == 0
    (game,) = lines(tmp_path)
    rows = [m for m, label in zip(game["measures"], game["entrants"], strict=True) if label == "bot"]
    assert sum(m["beliefs"] for m in rows) == 0 < sum(m["unanswered"] for m in rows)
    summary = json.loads((tmp_path / "summary.json").read_text())
    measures = {(r["entrant"], r["measure"]): r["value"] for r in summary["measures"]}
    assert measures["bot", "unanswered"] == 1
    assert measures["bot", "log_loss"] is None
    assert measures["one", "log_loss"] is not None, "scripted players are asked beside them"


@pytest.mark.slow
def test_a_limit_stops_it_and_a_higher_one_goes_on_without_asking_twice(tmp_path: Path, server: ModelServer) -> None:
    assert play(tmp_path / "whole", "--beliefs", *PRICE).exit_code == 0
    whole = asked(server)
    server.requests.clear()
    cut = tmp_path / "cut"
    limit = len(whole) // 3
    for most in (limit, limit, 2 * limit):
        stopped = play(cut, "--beliefs", *PRICE, "--limit", f"calls={most}")
        assert stopped.exit_code == 9, stopped.output
        assert f"limit of {most} calls a tournament" in stopped.stderr
        assert "run it again with a higher limit to continue" in stopped.stderr
        assert "Traceback" not in stopped.stderr
        assert len(asked(server)) <= most
    assert json.loads((cut / "summary.json").read_text())["games"] < 2
    assert play(cut, "--beliefs", *PRICE, "--limit", f"calls={len(whole)}").exit_code == 0
    assert lines(cut) == lines(tmp_path / "whole")
    assert all((cut / name).read_bytes() == (tmp_path / "whole" / name).read_bytes() for name in TABLES)
    key = json.dumps
    assert sorted(map(key, asked(server))) == sorted(map(key, whole)), "each of them once"


@pytest.mark.slow
def test_tokens_and_cost_are_limited_and_told_by_entrant(tmp_path: Path, server: ModelServer) -> None:
    assert play(tmp_path / "cup", *PRICE, "--beliefs").exit_code == 0
    with (tmp_path / "cup" / "spending.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    summary = json.loads((tmp_path / "cup" / "summary.json").read_text())
    (told,) = summary["spending"]
    assert (row["entrant"], row["model"]) == ("bot", "openai/fake")
    assert int(row["calls"]) == told["calls"] == len(asked(server))
    assert int(row["belief_calls"]) == sum(map(is_question, asked(server))) > 0
    price = (told["prompt_tokens"] + 2 * told["completion_tokens"]) / 1e6
    assert float(row["cost"]) == pytest.approx(price)
    with (tmp_path / "cup" / "games.csv").open(newline="") as file:
        seats = list(csv.DictReader(file))
    assert sum(int(s["calls"]) for s in seats if s["entrant"] == "bot") == told["calls"]
    assert {s["calls"] for s in seats if s["entrant"] == "one"} == {""}
    assert sum(float(s["cost"]) for s in seats if s["entrant"] == "bot") == pytest.approx(price)
    page = (tmp_path / "cup" / "report.html").read_text()
    assert "Model usage" in page
    assert f"${price:.4f}" in page
    for kind, most in (("cost", price / 2), ("tokens", told["prompt_tokens"] // 2)):
        stopped = play(tmp_path / kind, *PRICE, "--beliefs", "--limit", f"{kind}={most}")
        assert stopped.exit_code == 9, stopped.output
        spent = stopped.stdout.split("All models, unfinished games included: ")[1]
        calls, tokens = int(spent.split()[0]), int(spent.split(", ")[1].split()[0])
        assert calls > 0
        assert tokens / 1e6 < most if kind == "cost" else tokens <= most


@pytest.mark.slow
def test_costs_that_nobody_knows_stay_unknown(tmp_path: Path) -> None:
    assert "cost unknown" in play(tmp_path, games=1).output
    assert json.loads((tmp_path / "summary.json").read_text())["spending"][0]["cost"] is None
    assert "unknown" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_progress_says_what_all_games_take_at_this_rate(tmp_path: Path) -> None:
    done = play(tmp_path, *PRICE, games=2)
    assert done.exit_code == 0, done.output
    taken = [sum(row[0] for row in game["usage"] if row) for game in lines(tmp_path)]
    said = [line for line in done.stderr.splitlines() if line.startswith("1 of 2 games")]
    assert any(f"at this rate {2 * calls} calls" in said[0] for calls in taken)
    assert "$" in said[0]
    assert "at this rate" not in done.stderr.splitlines()[-1], "all of it is over then"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--limit", "cost=1"],
            "--limit cost can't be enforced: the price of openai/fake is unknown; state it with",
        ),
        (["--limit", "cost=0"], "--limit run.cost must be an amount of US dollars above 0, not 0"),
        (["--limit", "cost=nan"], "--limit run.cost must be an amount of US dollars above 0, not nan"),
        (
            ["--limit", "day.cost=1"],
            "--limit requires [calls|tokens|cost]=N, such as cost=2 or tokens=500000, not 'day",
        ),
        (["--limit", "calls=2", "--limit", "run.calls=3"], "--limit sets run.calls twice"),
        (["--price", "openai/fake"], "--price requires ADDRESS=IN/OUT"),
        (["--price", "openai/fake=1"], "--price requires ADDRESS=IN/OUT"),
        (["--price", "openai/fake=-1/2"], "--price requires ADDRESS=IN/OUT"),
        (["--price", "openai/fake=nan/2"], "--price requires ADDRESS=IN/OUT"),
        (["--price", "openai/other=1/2"], "--price names 'openai/other', but no entrant is that model"),
        ([*PRICE, *PRICE], "' twice"),
    ],
)
def test_limits_and_prices_that_make_no_sense_are_refused_in_a_sentence(
    words: list[str], told: str, tmp_path: Path, server: ModelServer
) -> None:
    refused = play(tmp_path / "cup", *words)
    assert isinstance(refused.exception, UsageError), refused.output
    assert told in str(refused.exception)
    assert asked(server) == []
    assert not (tmp_path / "cup").exists()


KILLED = """
import os, signal, sys
from wsap_core.cli import main
from wsap_tossim.tournament.asking import Answers
left = [int(sys.argv[1])]
kept = Answers.add
def dies(self, *given):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return kept(self, *given)
Answers.add = dies
main(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_kill_among_the_questions_changes_nothing_and_asks_none_twice(tmp_path: Path, server: ModelServer) -> None:
    assert play(tmp_path / "whole", "--beliefs").exit_code == 0
    questions = sum(map(is_question, asked(server)))
    server.requests.clear()
    killed = tmp_path / "killed"
    words = ["tossim", "tournament", *FIELD, *GAME, "--games", "2", "--out", str(killed), "--beliefs"]
    ended = subprocess.run([sys.executable, "-c", KILLED, "3", *words], timeout=300, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    kept = (killed / "beliefs.jsonl").read_bytes()
    assert kept.count(b"\n") == 2
    (killed / "beliefs.jsonl").write_bytes(kept + kept[:20])  # as if it had been in the middle of a line
    assert play(killed, "--beliefs").exit_code == 0
    assert lines(killed) == lines(tmp_path / "whole")
    assert all((killed / name).read_bytes() == (tmp_path / "whole" / name).read_bytes() for name in TABLES)
    rows = [json.loads(line) for line in (killed / "beliefs.jsonl").read_text().splitlines()]
    assert len({(r["game"], r["day"], r["player"]) for r in rows}) == len(rows) == questions
    lost = sum(map(is_question, asked(server))) - questions
    assert 1 <= lost <= 3, "those whose replies were on their way"


@pytest.mark.slow
def test_a_server_that_fails_ends_it_in_a_sentence_and_it_goes_on_later(tmp_path: Path, server: ModelServer) -> None:
    answered = iter(range(20))
    server.default = lambda body: says(body) if next(answered, None) is not None else Say(status=400, error="No more.")
    failed = play(tmp_path)
    assert failed.exception is not None
    assert "No more." in str(failed.exception)
    assert "Finished games are kept; fix the problem and run it again to continue." in failed.stderr
    server.default = says
    assert play(tmp_path).exit_code == 0
    assert len(lines(tmp_path)) == 2


@pytest.mark.slow
def test_beliefs_can_not_be_switched_on_in_the_middle(tmp_path: Path) -> None:
    assert play(tmp_path, games=1).exit_code == 0
    refused = play(tmp_path, "--beliefs", games=1)
    assert "beliefs is false there and true here" in str(refused.exception)


@pytest.mark.slow
def test_several_games_at_once_come_to_the_same(tmp_path: Path, server: ModelServer) -> None:
    assert play(tmp_path / "one", "--beliefs", games=4).exit_code == 0
    assert play(tmp_path / "many", "--beliefs", "--jobs", "4", games=4).exit_code == 0
    assert lines(tmp_path / "many") == lines(tmp_path / "one")
    assert (tmp_path / "many" / "report.html").read_bytes() == (tmp_path / "one" / "report.html").read_bytes()


def test_decisions_made_for_a_model_are_counted_and_left_out_of_an_export(tmp_path: Path, server: ModelServer) -> None:
    def mumbles(body: Any) -> Say:
        """Say nothing that can be read by night, asked again or not."""
        turns = [m["content"] for m in body["messages"] if "Player Roster" in m["content"]]
        return Say("Hm, hard to say.") if "\nNight " in f"\n{turns[-1]}" else says(body)

    server.default = mumbles
    done = play(tmp_path / "cup")
    assert done.exit_code == 0, done.output
    forced = decided = 0
    for game in lines(tmp_path / "cup"):
        for n, label in enumerate(game["entrants"]):
            rows = [r for r in game["record"]["game"]["record"] if r[1] == n]
            marked = [r for r in rows if r[5]]
            assert game["refused"][n] == len(marked), "as many are marked as are counted"
            assert not marked or label == "bot"
            assert {r[2] for r in marked} <= {"wait"}
            forced += len(marked)
            decided += len(rows) if label == "bot" else 0
    assert 0 < forced < decided
    assert f"{forced} of {decided} decisions of bot were made for it" in done.output
    with (tmp_path / "cup" / "games.csv").open(newline="") as file:
        assert sum(int(row["refused"]) for row in csv.DictReader(file)) == forced
    assert json.loads((tmp_path / "cup" / "summary.json").read_text())["refused"] == {"one": 0, "bot": forced}
    exported = CliRunner().invoke(export, [str(tmp_path / "cup"), "--out", str(tmp_path / "train.jsonl")])
    assert exported.exit_code == 0, exported.output
    assert f"Left out: {forced} turns that were decided for their players" in exported.stderr
    kept = [json.loads(row) for row in (tmp_path / "train.jsonl").read_text().splitlines()]
    assert not any(row["forced"] for row in kept)


@pytest.mark.slow
def test_games_of_a_model_that_never_replies_legibly_are_forfeited_and_not_rated(
    tmp_path: Path, server: ModelServer
) -> None:
    server.default = lambda body: Say("Hm, hard to say.")
    done = play(tmp_path)
    assert done.exit_code == 0, done.output
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["refused"]["bot"] == summary["decisions"]["bot"] > 0
    assert summary["forfeited"] == {"one": 0, "bot": 2}
    assert summary["factions"] == []
    assert "bot forfeited 2 games, which are not rated" in done.output


INTERRUPTED = """
import os, signal, sys
from wsap_core.cli import main
from wsap_nexus.runs.record.recorder import Recorder
left, noted = [12], Recorder.chosen
def stops(self, *given, **more):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGINT)
    return noted(self, *given, **more)
Recorder.chosen = stops
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGINT")
@pytest.mark.slow
def test_what_was_spent_before_ctrl_c_is_in_the_table(tmp_path: Path, server: ModelServer) -> None:
    words = ["tossim", "tournament", *FIELD, *GAME, *PRICE, "--games", "2", "--out", str(tmp_path)]
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED, *words], timeout=300, check=False, capture_output=True)
    assert ended.returncode == 130, ended.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["games"] == 0
    with (tmp_path / "spending.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert 0 < int(row["calls"]) <= len(asked(server)), "a call that was under way is not known"
    assert int(row["calls"]) == summary["spending"][0]["calls"]
    assert float(row["cost"]) == pytest.approx((int(row["prompt_tokens"]) + 2 * int(row["completion_tokens"])) / 1e6)
    assert f"bot used {row['calls']} calls".encode() in ended.stdout
    assert play(tmp_path, *PRICE).exit_code == 0
    with (tmp_path / "spending.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert int(row["calls"]) == sum(r[0] for game in lines(tmp_path) for r in game["usage"] if r), "games that are over"
