"""Whole tournaments: played, killed, gone on with, refused, reported."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wsap_core.errors import StorageLockedError, UsageError, WireError, WsapError
from wsap_core.seams.agent import NO_USAGE
from wsap_eval.kit import Reports
from wsap_tossim.cli.tournament import tournament
from wsap_tossim.replay.record import record_from_json
from wsap_tossim.tournament import games as playing
from wsap_tossim.tournament.games import Game, Scripted, play_one
from wsap_tossim.tournament.ledger import Ledger
from wsap_tossim.tournament.plan import Entrant, Settings, entrants_of, fixture
from wsap_tossim.tournament.report import report_html
from wsap_tossim.tournament.run import run_tournament
from wsap_tossim.tournament.table import summary_of

RESULTS = ("games.jsonl", "games.csv", "ratings.csv", "summary.json", "report.html")
QUICK = {"mode": "five", "rules": "quick"}


@pytest.fixture
def cup() -> Settings:
    return Settings(entrants_of(["one=scripted", "two=random"]), QUICK, 3)


def results(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


def test_a_tournament_leaves_its_tables_and_games_that_can_be_looked_at(cup: Settings, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    outcome = run_tournament(
        tmp_path, cup, 4, resamples=5, reports=Reports(lambda so_far: seen.append((so_far.played, so_far.of)))
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (outcome.before, outcome.stopped, outcome.summary["games"]) == (0, False, 4)
    assert sum(r["seats"] for r in outcome.summary["factions"]) == 20
    assert json.loads((tmp_path / "summary.json").read_text()) == outcome.summary
    for text in (tmp_path / "games.jsonl").read_text().splitlines():
        line = json.loads(text)
        record = record_from_json(line["record"])
        assert record.game.ending is not None
        assert list(record.game.ending.winners) == line["winners"]
        assert [p.first_role.name for p in record.game.state.players] == line["roles"]
        assert list(record.played_by) == line["entrants"] == [("one", "two")[n] for n in line["seats"]]
        assert fixture(cup, line["game"]).names == record.names


@pytest.mark.slow
def test_it_goes_on_and_processes_make_no_difference(cup: Settings, tmp_path: Path) -> None:
    run_tournament(tmp_path / "whole", cup, 6, resamples=5)
    run_tournament(tmp_path / "parts", cup, 2, resamples=5)
    outcome = run_tournament(tmp_path / "parts", cup, 6, jobs=2, resamples=5)
    assert outcome.before == 2
    assert results(tmp_path / "whole") == results(tmp_path / "parts")


KILLED = """
import os, signal, sys
from pathlib import Path
from wsap_tossim.tournament import run, ledger
from wsap_tossim.tournament.plan import Entrant, Settings, entrants_of
folder, at = Path(sys.argv[1]), int(sys.argv[2])
class Dies:
    def __init__(self, file): self.file, self.left = file, at
    def write(self, data):
        if self.left <= len(data):
            self.file.write(data[:self.left]); self.file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= len(data)
        return self.file.write(data)
    def __getattr__(self, name): return getattr(self.file, name)
opened = ledger.Ledger.__init__
def mean(self, *given):
    opened(self, *given)
    self._journal._file = Dies(self._journal._file)
ledger.Ledger.__init__ = mean
options = {"mode": "five", "rules": "quick"}
run.run_tournament(folder, Settings(entrants_of(["one=scripted", "two=random"]), options, 3), 4)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.slow
def test_after_a_kill_in_the_middle_of_a_line_it_comes_to_the_same(cup: Settings, tmp_path: Path) -> None:
    run_tournament(tmp_path / "whole", cup, 4, resamples=5)
    ends = [len(line) for line in (tmp_path / "whole" / "games.jsonl").read_bytes().splitlines(keepends=True)]
    folder = tmp_path / "killed"
    # Killed while it writes the second game's line, half of it on the disk.
    half = ends[0] + ends[1] // 2
    ended = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(half)], timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len((folder / "games.jsonl").read_bytes()) == half
    outcome = run_tournament(folder, cup, 4, resamples=5)
    assert (outcome.before, outcome.repaired) == (1, half - ends[0])
    assert results(folder) == results(tmp_path / "whole")


def test_a_whole_line_without_its_end_is_played_again(cup: Settings, tmp_path: Path) -> None:
    run_tournament(tmp_path, cup, 2, resamples=2)
    whole = results(tmp_path)
    path = tmp_path / "games.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    assert run_tournament(tmp_path, cup, 2, resamples=2).before == 1
    assert results(tmp_path) == whole


def test_ctrl_c_leaves_a_folder_that_can_be_gone_on_with(
    cup: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = playing.play_one

    def interrupted(settings: Settings, number: int) -> dict[str, Any]:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)  # the game in progress is finished
        return played(settings, number)

    words = ["one=scripted", "two=random", "--mode", "five", "--rules", "quick", "--seed", "3", "--games", "4"]
    words += ["--resamples", "5", "--out", str(tmp_path)]
    with monkeypatch.context() as patched:
        patched.setattr(playing, "play_one", interrupted)
        stopped = CliRunner().invoke(tournament, words)
    assert stopped.exit_code == 130
    assert "Stopped with 1 game left" in stopped.stderr
    assert json.loads((tmp_path / "summary.json").read_text())["games"] == 3
    gone_on = CliRunner().invoke(tournament, [*words, "--json"])
    assert gone_on.exit_code == 0
    assert json.loads(gone_on.stdout)["games"] == 4
    run_tournament(tmp_path / "whole", cup, 4, resamples=5)
    assert results(tmp_path / "whole") == results(tmp_path)


def test_a_game_with_which_processes_die_ends_it_in_a_sentence(cup: Settings) -> None:
    with pytest.raises(WsapError, match=r"Game 3 was lost: 3 worker processes died\."):
        Scripted(cup).lost(Game(2), "3 worker processes died", NO_USAGE)


def test_other_settings_are_refused_and_said(cup: Settings, tmp_path: Path) -> None:
    run_tournament(tmp_path, cup, 1, resamples=0)
    other = Settings(cup.entrants, cup.options, 4)
    with pytest.raises(UsageError, match="other settings: seed is 3 there and 4 here"):
        run_tournament(tmp_path, other, 1, resamples=0)
    with pytest.raises(UsageError, match="other settings: entrants is"):
        run_tournament(tmp_path, Settings(entrants_of(["a=random", "b=random"]), QUICK, 3), 1, resamples=0)


def test_a_folder_that_is_no_tournament_or_is_in_use_is_refused(cup: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"can't be written to .*: .*; choose another with --out"):
        run_tournament(tmp_path / "file" / "x", cup, 1)
    (tmp_path / "games.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"has a games\.jsonl that would be overwritten, but no tournament\.json"):
        run_tournament(tmp_path, cup, 1)
    (tmp_path / "games.jsonl").unlink()
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(UsageError, match=r"has a report\.html that would be overwritten"):
        run_tournament(tmp_path, cup, 1)
    (tmp_path / "report.html").unlink()
    for text in ("[]", "{", '{"format": "else", "settings": {}}', "[" * 100_000):
        (tmp_path / "tournament.json").write_text(text)
        with pytest.raises(WireError, match="is damaged, or not of a tournament"):
            run_tournament(tmp_path, cup, 1)
    (tmp_path / "tournament.json").unlink()
    with Ledger(tmp_path, cup), pytest.raises(StorageLockedError, match="Another process"):
        Ledger(tmp_path, cup)


def test_a_damaged_line_in_the_middle_is_refused(cup: Settings, tmp_path: Path) -> None:
    run_tournament(tmp_path, cup, 2, resamples=0)
    path = tmp_path / "games.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b'{"game": "x"}\n' + second)
    with pytest.raises(WireError, match=r"Line 1 of .* is damaged: .*number of a game\. Delete it;"):
        run_tournament(tmp_path, cup, 2)
    path.write_bytes(second)
    run_tournament(tmp_path, cup, 2, resamples=0)
    assert path.read_bytes() == first + second, "a line that was taken out is played again"


EVIL = '<script>window.hit=1</script>"><img src=x onerror=hit()>'


class Tags(HTMLParser):
    """Notes every tag of a page, and what its attributes would run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_hostile_labels_stay_text_in_the_report(line: Callable[..., dict[str, Any]]) -> None:
    cup = Settings((Entrant(f"{EVIL}\u202e", "scripted"), Entrant("a\"b&c'", "random")), QUICK)
    sums = [{"votes": 1.0, "votes_hit": 1.0, "votes_base": 0.2}] * 5
    lines = [line(n, [n % 2, 0, 1, 0, 1], [0], "Town", sums=sums) for n in range(4)]
    page = report_html(summary_of(cup, lines, resamples=5))
    tags = Tags()
    tags.feed(page)
    assert not tags.tags & {"script", "img", "a", "link", "iframe", "object"}
    assert not {a for a in tags.attributes if a.startswith("on") or a in ("href", "src")}
    assert "&lt;script&gt;window.hit=1" in page
    assert "\u202e" not in page
    assert "default-src 'none'" in page


def test_a_report_of_no_games_says_so(cup: Settings) -> None:
    assert "No game has been played yet." in report_html(summary_of(cup, [], resamples=5))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["scripted", "nobody"], "'nobody' is not an entrant"),
        (["scripted", "random", "--mode", "nein"], "no mode 'nein'"),
        (["scripted", "random", "--option", "jobs"], "--option takes KEY=VALUE, not 'jobs'"),
        (["scripted", "random", "--option", "floor=up"], "The rule floor is 'up'"),
    ],
)
def test_wrong_words_are_refused_in_a_sentence(words: list[str], says: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(tournament, [*words, "--out", str(tmp_path / "cup")])
    assert isinstance(refused.exception, UsageError)
    assert says in str(refused.exception)
    assert not (tmp_path / "cup").exists()


def test_a_game_does_not_depend_on_the_hash_seed(cup: Settings) -> None:
    script = (
        "import json;from wsap_tossim.tournament.plan import *;from wsap_tossim.tournament.games import play_one;"
        "print(json.dumps(play_one(Settings(entrants_of(['one=scripted','two=random']),"
        "{'mode':'five','rules':'quick'},3),1)))"
    )
    environ = {**os.environ, "PYTHONHASHSEED": "77"}
    told = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, timeout=300, check=True)
    assert json.loads(told.stdout) == json.loads(json.dumps(play_one(cup, 1)))


def test_without_evaluations_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wsap_eval.kit", None)
    refused = CliRunner().invoke(tournament, ["scripted", "random", "--out", str(tmp_path / "cup")])
    assert isinstance(refused.exception, UsageError)
    assert re.search(r"Tournaments need wsap-eval: .*pip install .*wsap-eval", str(refused.exception))
    assert not list(tmp_path.iterdir())
