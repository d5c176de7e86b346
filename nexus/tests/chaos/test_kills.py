"""A nexus that is killed again and again, at any moment, loses nothing and does nothing twice.

Each test kills a few times; hundreds of times it is done by `nox -s kills`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from script_kit import run_script

SCRIPT = Path(__file__).with_name("hub_kill.py")
FAR = Path(__file__).with_name("hub_kill_far.py")
LIVING = Path(__file__).with_name("hub_kill_living.py")
WORLDS = Path(__file__).with_name("hub_kill_worlds.py")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """The kind of database that is killed around; on PostgreSQL its server is restarted, too."""
    if request.param == "postgresql":
        request.getfixturevalue("postgresql")  # which skips where there is none
    return str(request.param)


def told(script: Path, words: str) -> dict[str, Any]:
    """Run a script with `--json`, and return what it found, as which status it ended among it."""
    done = run_script(script, *words.split(), "--json")
    assert done.stdout, done.stderr[-2000:]
    return {"status": done.returncode, **json.loads(done.stdout)}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_a_nexus_killed_again_and_again_under_load_has_everybody_and_everything_in_one_place(database: str) -> None:
    # A life on a server, which is restarted, too, takes several times as long.
    kills, seed = (5, 1) if database == "sqlite" else (3, 8)
    found = told(SCRIPT, f"--database {database} --kills {kills} --seed {seed} --compare 4")
    assert found["problems"] == []
    assert (found["status"], found["kills"]) == (0, kills)
    # It was killed while it did something, and stays were gone on with and compared.
    assert found["acknowledged"] > 8 * kills
    assert found["resumptions"] > 0
    assert found["compared_resumed"] > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_a_nexus_and_games_in_other_processes_killed_in_the_middle_of_moves_have_everything_in_one_place() -> None:
    found = told(FAR, "--kills 4 --seed 1 --agents 3 --compare 3")
    assert found["problems"] == []
    assert found["status"] == 0
    # Both kinds of processes were killed, at calls to the games too, and worlds came back. Only one that alone was
    # at work in its game's process when that was killed twice in a row is held to blame, and given up.
    assert found["nexus"] > 0
    assert found["games"] > 0
    given_up = {f"The game '{name}' failed: its process ended." for name in ("far-quarry", "deep-quarry")}
    assert found["failed"].keys() <= given_up
    assert sum(found["failed"].values()) <= found["games"] // 2
    assert found["compared"] > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_a_world_that_lives_in_a_nexus_that_is_killed_loses_no_tick_and_nobody_who_came_and_went(database: str) -> None:
    kills = 3 if database == "sqlite" else 2
    found = told(LIVING, f"--database {database} --kills {kills} --seed 3")
    assert found["problems"] == []
    assert found["kills"] == kills
    assert min(found["events"]["left"], found["events"]["item_found"], found["events"]["items_moved"]) > kills


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_no_world_is_lost_however_agents_act_and_people_meddle_in_a_nexus_that_is_killed(database: str) -> None:
    kills = 4 if database == "sqlite" else 3
    found = told(WORLDS, f"--database {database} --kills {kills} --seed 2")
    assert found["problems"] == []
    assert (found["status"], found["kills"]) == (0, kills)
    # Worlds went on in most lives, asked their model, and agents came and went meanwhile.
    assert found["all_worlds_went_on"] >= kills // 2
    assert min(found["events"]["tick"], found["events"]["call"], found["events"]["joined"]) > 2
