"""Games in which models take part: through the runtime, several at once, and gone on with after a kill."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from wsap_core.errors import WsapError
from wsap_core.seams.services import runtime_services
from wsap_tossim.replay.record import record_from_json
from wsap_tossim.tournament.plan import Settings, entrants_of
from wsap_tossim.tournament.run import run_tournament

pytest.importorskip("wsap_nexus", reason="needs the runtime (wsap-nexus)")
OPTIONS = {"mode": "five", "rules": "quick", "longest_game": 3}


def cup(reply: str = "wait") -> Settings:
    return Settings(entrants_of(["one=scripted", "bot=scripted/x"]), OPTIONS, 2, model_options={"model.reply": reply})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the games by number, without the runs' ids, which are drawn."""
    found = [json.loads(line) for line in (folder / "games.jsonl").read_text().splitlines()]
    return sorted(({**line, "run": None} for line in found), key=lambda line: line["game"])


KILLED = """
import os, signal, sys
from pathlib import Path
from wsap_tossim.tournament import run
from wsap_tossim.tournament.plan import Settings, entrants_of
from wsap_nexus.runs.record.recorder import Recorder
folder, left = Path(sys.argv[1]), [40]
noted = Recorder.chosen
def dies(self, *given, **more):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return noted(self, *given, **more)
Recorder.chosen = dies
options = {"mode": "five", "rules": "quick", "longest_game": 3}
entrants = entrants_of(["one=scripted", "bot=scripted/x"])
run.run_tournament(folder, Settings(entrants, options, 2, model_options={"model.reply": "wait"}), 2, jobs=2)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_models_sit_beside_scripted_players_and_a_kill_changes_nothing(tmp_path: Path) -> None:
    outcome = run_tournament(tmp_path / "whole", cup(), 2, jobs=2, resamples=2)
    whole = lines(tmp_path / "whole")
    assert outcome.summary["games"] == len(whole) == 2
    assert {label for line in whole for label in line["entrants"]} == {"one", "bot"}
    for line in whole:
        record = record_from_json(line["record"])
        assert record.game.ending is not None
        bots = [n for n, label in enumerate(line["entrants"]) if label == "bot"]
        said = {e.verb for e in record.game.record if e.player in bots}
        assert said == {"wait"}, "the model said nothing else"
        assert {e.verb for e in record.game.record if e.player not in bots} > {"wait", "speak"}
    killed = tmp_path / "killed"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(killed)], env=dict(os.environ), timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL
    with runtime_services(str(killed / "runs.db")) as services:
        begun = set(services.require("runs").runs())
    assert len(begun) == 2
    run_tournament(killed, cup(), 2, jobs=1, resamples=2)
    assert lines(killed) == whole
    runs = {json.loads(line)["run"] for line in (killed / "games.jsonl").read_text().splitlines()}
    assert runs == begun, "games that had begun were gone on with"


def test_a_model_that_cannot_be_asked_ends_it_in_a_sentence(tmp_path: Path) -> None:
    nobody = Settings(entrants_of(["one=scripted", "nosuch/model"]), OPTIONS)
    with pytest.raises(WsapError, match="nosuch"):
        run_tournament(tmp_path, nobody, 2, resamples=0)
    assert (tmp_path / "games.jsonl").read_bytes() == b""
    assert json.loads((tmp_path / "summary.json").read_text())["games"] == 0, "what there is, is told"


def screen(written: str) -> list[str]:
    """Return the lines that a terminal shows at last, of those controls that rich writes."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[\??\d*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", written):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part.startswith("\x1b["):
            row -= int(part[2:-1]) if part.endswith("A") else 0
        else:
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return lines


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a pseudoterminal")
def test_no_line_of_progress_is_left_or_twice_at_a_terminal(tmp_path: Path) -> None:
    import pty

    words = ["one=scripted", "bot=scripted/x", "--mode", "five", "--rules", "quick", "--option", "longest_game=3"]
    words += ["--model-option", "reply=wait", "--seed", "2", "--games", "4", "--resamples", "2"]
    script = "import sys; from wsap_core.cli import main; sys.exit(main(sys.argv[1:]))"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", script, "tossim", "tournament", *words, "--out", str(tmp_path / "cup")]
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
    os.close(theirs)
    written = b""
    with suppress(OSError):  # its end
        while piece := os.read(ours, 4096):
            written += piece
    os.close(ours)
    assert process.wait(timeout=300) == 0, written
    shown = [re.sub(r"\s+", " ", line) for line in screen(written.decode()) if line.strip()]
    at = next(n for n, line in enumerate(shown) if line.startswith("4 games, 2 blocks"))
    assert not [line for line in shown if " of 4 games" in line or "reading" in line or "Playing the first" in line]
    assert all("can't be constrained" in line or "leniently" in line for line in shown[:at]), shown[:at]
