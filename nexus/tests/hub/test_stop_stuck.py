"""A nexus whose process is held by a game can be stopped: without workers, a world that lives plays there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_nexus_kit import PATIENCE, environ_of, until, wsap

from wsap_nexus.runs.store import open_store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")

GAME = """
from dataclasses import replace
from pathlib import Path
from living_worlds import MEADOW, Meadow
from wsap_core.hookspecs import hookimpl

class Loops(Meadow):
    async def advance(self):
        if self.number == 2:
            Path(__file__).with_name("loops").touch()
            while True:
                pass
        return await super().advance()

@hookimpl
def wsap_adapters():
    return [replace(MEADOW, name="loops", factory="looping_game:Loops")]
"""
START = """
import sys
from wsap_nexus.http import signals
from wsap_core.cli import main
signals.STUCK_SECONDS = 1.0  # it burns the processor meanwhile
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_nexus_is_stopped_while_a_world_that_lives_loops_and_the_next_start_has_all_ticks(tmp_path: Path) -> None:
    site, home = tmp_path / "site", tmp_path / "home"
    information = site / "looping_game-1.0.dist-info"
    information.mkdir(parents=True)
    (site / "looping_game.py").write_text(GAME, encoding="utf-8")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: looping-game\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[wsap]\nlooping = looping_game\n")
    path = os.pathsep.join([str(site), str(Path(__file__).parents[1] / "kit"), os.environ.get("PYTHONPATH", "")])
    environ = environ_of(home, PYTHONPATH=path)
    words = ("nexus", "start", "--port", "0", "--game", "echo", "--world", "glade=loops", "--workers", "0")
    with subprocess.Popen(
        [sys.executable, "-c", START, *words], env=environ, stderr=subprocess.PIPE, text=True
    ) as nexus:
        try:
            until((site / "loops").exists, "the loop")
            done = wsap(environ, "nexus", "stop")
            assert (done.returncode, done.stderr) == (0, "")
            _, told = nexus.communicate(timeout=PATIENCE)
        finally:
            nexus.kill()
    assert nexus.returncode == 130
    assert told.splitlines()[-1].startswith("Stopped immediately, because a game in the nexus' process did not return")
    assert "Traceback" not in told
    assert wsap(environ, "nexus", "status").stdout.splitlines()[0].startswith("No nexus is running")
    with open_store(str(home / "wsap.db")) as store:
        assert [event.step for event in store.repository.read_events("nexus-glade", kinds=("tick",))] == [1, 2]
