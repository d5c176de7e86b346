"""`wsap nexus start`, `stop` and `status`, with real processes: told to stop, killed, started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from cli_nexus_kit import QUICK, environ_of, nexus, nexus_json, refused, running, until, wsap

from wsap_core import PluginHost
from wsap_core.references import load_adapter_spec
from wsap_nexus.cli.nexus.request import StartRequest, words_of
from wsap_nexus.cli.nexus.start import settings_of, start
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.state import Running, birth, wait_for_end

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return environ_of(tmp_path / "home")


def home(environ: dict[str, str]) -> Path:
    return Path(environ["WSAP_HOME"])


@pytest.mark.slow
def test_a_fresh_nexus_says_where_it_is_and_has_two_agents_that_need_no_model(environ: dict[str, str]) -> None:
    with running(environ, "--port", "0", "--workers", "0") as hub:
        assert hub.ready["url"].startswith("http://127.0.0.1:")
        assert hub.ready["pid"] == hub.process.pid
        found = hub.answering()
        assert (found["running"], found["url"]) == (True, hub.ready["url"])
        assert [(a["id"], a["state"], a["decided_by"]) for a in found["agents"]] == [
            ("ada", "active", "the game's default agent"), ("bob", "active", "the game's default agent"),
        ]  # fmt: skip
        installed = {row["name"] for row in json.loads(wsap(environ, "games", "--json").stdout)}
        host = PluginHost.discovered()
        alone = {name for name in installed if not load_adapter_spec(name, host).family}
        assert {row["game"] for row in nexus_json(environ, "games")} == alone
        for row in nexus_json(environ, "games"):
            lives = "lives" in load_adapter_spec(row["game"], host).abilities
            assert row["status"] == ("offline" if lives else "available")
            assert (f"start the nexus with --world NAME={row['game']}" in row["reason"]) == lives


HALF_DEAD = """
import ctypes, os, sys, threading

def last():
    sys.stdin.buffer.read()
    os._exit(0)

threading.Thread(target=last).start()
print(flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""
"""A program whose first thread has ended while another goes on until its input ends, like one that is being killed."""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_nexus_has_ended_only_when_its_last_thread_has() -> None:
    with subprocess.Popen([sys.executable, "-c", HALF_DEAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        there = Running(process.pid, birth(process.pid), "http://127.0.0.1:1/", 0.0, "wsap.db")
        process.stdout.readline()
        stat_file = Path(f"/proc/{process.pid}/stat")
        until(lambda: stat_file.read_text().rpartition(")")[2].split()[0] == "Z", "the end of the first thread")
        assert there.alive
        assert not wait_for_end(there, 0.1)
        process.stdin.close()
        until(lambda: not there.alive, "the end of the process")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_in_good_order(environ: dict[str, str], number: int) -> None:
    with running(environ) as hub:
        hub.someone_was_away()
        hub.tell(number)
        code, errors = hub.ended()
        assert code == 0, errors
        assert errors.splitlines() == [
            "Stopping: agents finish their decisions. Press Ctrl-C again to stop immediately."
        ]
    found = nexus_json(environ, "status")
    assert (found["running"], found["url"], found["pid"]) == (False, None, None)
    assert len(found["agents"]) == 2
    assert not list(home(environ).glob("*.nexus.json"))


@pytest.mark.slow
def test_started_again_it_goes_on_where_it_was(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        before = hub.someone_was_away()
        hub.tell(signal.SIGINT)
        assert hub.ended()[0] == 0
    with running(environ) as hub:
        after = hub.status()
        assert after["events"] > before["events"]
        assert after["sessions"] >= before["sessions"]
        assert [a["id"] for a in after["agents"]] == ["ada", "bob"]


@pytest.mark.slow
def test_a_kill_leaves_a_state_file_that_counts_for_nothing(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        hub.someone_was_away()
        hub.kill()
    assert list(home(environ).glob("*.nexus.json")), "nobody could remove it"
    assert nexus_json(environ, "status")["running"] is False
    assert "No nexus is running" in nexus(environ, "stop")
    with running(environ) as hub:
        assert hub.status()["pid"] == hub.process.pid


def test_a_state_file_of_a_process_that_is_another_now_counts_for_nothing(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        (path,) = home(environ).glob("*.nexus.json")
        told = json.loads(path.read_text())
        hub.kill()
    # The number was given again, to a process that lives: this one. Only its birth tells them apart.
    path.write_text(json.dumps({**told, "pid": os.getpid()}))
    assert nexus_json(environ, "status")["running"] is False
    assert json.loads(wsap(environ, "nexus", "stop", "--json").stdout)["stopped"] is False


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"pid": "x"}', "\x00\x01", "[" * 50_000])
def test_a_state_file_that_is_none_is_passed_over(environ: dict[str, str], content: str) -> None:
    nexus(environ, "agents", "add", "ada")
    (home(environ) / "wsap.db.nexus.json").write_text(content)
    assert nexus_json(environ, "status")["running"] is False


def test_only_its_owner_can_read_the_token_and_the_state(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        for path in (Path(hub.ready["token_file"]), *home(environ).glob("*.nexus.json"), home(environ) / "wsap.db"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert stat.S_IMODE(home(environ).stat().st_mode) & 0o077 == 0


@pytest.mark.slow
def test_stop_ends_it_and_is_content_when_there_is_none(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        assert json.loads(nexus(environ, "stop", "--json")) == {"running": False, "stopped": True}
        assert hub.ended()[0] == 0
    assert json.loads(nexus(environ, "stop", "--json")) == {"running": False, "stopped": False}


@pytest.mark.slow
def test_one_that_hangs_is_ended_by_force_and_goes_on(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        hub.someone_was_away()
        hub.tell(signal.SIGSTOP)
        found = hub.status()
        assert (found["running"], found["answers"]) == (True, False)
        code, sentence = refused(environ, "stop", "--wait", "0.2")
        assert code == 1
        assert "wsap nexus stop --force" in sentence
        nexus(environ, "stop", "--force")
        assert hub.ended()[0] == -signal.SIGKILL
    with running(environ) as hub:
        assert hub.answering()


@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(environ: dict[str, str], tmp_path: Path) -> None:
    # A game that thinks for longer than anybody waits, and lets nothing else happen meanwhile.
    game = tmp_path / "slow.py"
    game.write_text(SLOW)
    with running(environ, "--port", "0", "--workers", "0", "--game", f"{game}:Slow") as hub:
        until(lambda: (tmp_path / "busy").exists(), "a decision that takes for ever")
        hub.tell(signal.SIGINT)
        assert hub.process.stderr is not None
        assert "Stopping" in hub.process.stderr.readline()
        hub.tell(signal.SIGINT)
        code, errors = hub.ended()
        assert (code, errors) == (130, "Stopped immediately; nothing is lost. Continue with: wsap nexus start\n")
    assert nexus_json(environ, "status")["running"] is False


SLOW = """
import time
from pathlib import Path
from wsap_core import ActionDef, ActionResult, ActionSpace, Observation

class Slow:
    game_description = "Takes its time."
    action_space = ActionSpace((ActionDef("wait", "Wait"),))

    def observe(self):
        return Observation()

    def reset(self):
        return Observation()

    def act(self, action):
        (Path(__file__).parent / "busy").touch()
        while True:
            time.sleep(0.05)  # a signal is handled between two of these; one long wait could begin just after it
"""


def test_a_port_in_use_is_one_sentence(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, sentence = refused(environ, "start", "--port", port)
    assert code == 2
    assert f"can't listen on 127.0.0.1 port {port}" in sentence
    assert "--port" in sentence


@pytest.mark.slow
def test_a_second_nexus_on_the_database_is_refused_and_changes_nothing(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        (path,) = home(environ).glob("*.nexus.json")
        before = path.read_text()
        code, sentence = refused(environ, "start", *QUICK)
        assert code == 6
        assert (
            f"A nexus is already running on the database {home(environ) / 'wsap.db'}, at {hub.ready['url']}" in sentence
        )
        assert refused(environ, "start", "--detach") == (code, sentence), "also where its port would be in the way"
        assert path.read_text() == before
        kinds = nexus_json_events(environ)
        assert "stopped" not in kinds
        assert hub.answering()


def nexus_json_events(environ: dict[str, str]) -> list[str]:
    import sqlite3

    with sqlite3.connect(home(environ) / "wsap.db") as connection:
        return [row[0] for row in connection.execute("SELECT kind FROM nexus_event ORDER BY seq")]


@pytest.mark.slow
def test_a_database_of_a_newer_version_is_one_sentence(environ: dict[str, str]) -> None:
    import sqlite3

    nexus(environ, "agents", "add", "ada")
    with sqlite3.connect(home(environ) / "wsap.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    for words in (("start", *QUICK), ("status",), ("agents", "list")):
        code, sentence = refused(environ, *words)
        assert code == 6
        assert "created by a newer version of WSAP" in sentence


def test_a_home_that_cannot_be_written_is_one_sentence(environ: dict[str, str]) -> None:
    if os.geteuid() == 0:
        environ["WSAP_HOME"] = "/sys/kernel/wsap"  # Linux lets nobody make a folder there, not even root
    else:
        home(environ).mkdir(mode=0o500)
    code, sentence = refused(environ, "start", *QUICK)
    assert code == 6
    assert "WSAP_HOME" in sentence


def test_a_home_that_is_a_file_is_one_sentence(environ: dict[str, str]) -> None:
    home(environ).write_text("")
    code, sentence = refused(environ, "start", *QUICK)
    assert code == 6
    assert "WSAP_HOME" in sentence


def test_listening_for_others_has_to_be_said(environ: dict[str, str]) -> None:
    code, sentence = refused(environ, "start", "--host", "0.0.0.0", "--port", "0")
    assert code == 2
    assert "--expose" in sentence
    assert not home(environ).exists() or not (home(environ) / "wsap.db").exists()


def test_a_game_that_there_is_not_is_refused_before_anything_is_written(environ: dict[str, str]) -> None:
    code, sentence = refused(environ, "start", "--port", "0", "--game", "crafterr")
    assert code == 2
    assert "crafterr" in sentence


@pytest.mark.parametrize(
    ("worlds", "words"),
    [
        (("town=matrix",), "does not live"),
        (("a=living_worlds:MEADOW", "a=living_worlds:FAIR"), "gives the name 'a' to two worlds"),
    ],
)
@pytest.mark.slow
def test_worlds_that_can_not_go_on_in_a_nexus_are_refused_before_it_starts(
    environ: dict[str, str], worlds: tuple[str, ...], words: str
) -> None:
    environ = {**environ, "PYTHONPATH": str(Path(__file__).parents[1] / "kit")}
    given = [word for world in worlds for word in ("--world", world)]
    code, sentence = refused(environ, "start", "--port", "0", *given)
    assert code == 2
    assert words in sentence


@pytest.mark.slow
def test_a_world_that_exists_keeps_its_game_and_its_options(environ: dict[str, str]) -> None:
    environ = {**environ, "PYTHONPATH": str(Path(__file__).parents[1] / "kit")}
    quick = ("--port", "0", "--workers", "0", "--game", "echo")
    with running(environ, *quick, "--world", "a=living_worlds:MEADOW,ends=100000") as hub:
        hub.tell(signal.SIGTERM)
        assert hub.ended()[0] == 0
    for world, words in {
        "a=living_worlds:MEADOW,ends=7": "was made with ends=100000, and --world gives ends=7",
        "a=living_worlds:MEADOW,rain=7": "was made with no rain, and --world gives rain=7",
        "a=living_worlds:FAIR": "is one of 'meadow', and --world gives it to 'fair'",
    }.items():
        code, sentence = refused(environ, "start", *quick, "--world", world)
        assert (code, words in sentence, "another name" in sentence) == (2, True, True), sentence
    for world in ("a=living_worlds:MEADOW", "a=living_worlds:MEADOW,ends=100000"):
        with running(environ, *quick, "--world", world):
            pass


@pytest.mark.slow
def test_in_the_background_it_returns_once_it_answers(environ: dict[str, str]) -> None:
    told = json.loads(nexus(environ, "start", "--detach", "--json", *QUICK))
    try:
        found = until(lambda: (s := nexus_json(environ, "status"))["answers"] and s, "a response")
        assert found["pid"] == told["pid"]
    finally:
        nexus(environ, "stop")
    code, sentence = refused(environ, "start", "--detach", "--port", "0", "--game", "crafterr")
    assert code == 2, "as without --detach"
    assert "crafterr" in sentence
    assert "nexus.log" in sentence


@pytest.mark.slow
def test_in_the_background_it_gives_the_address_that_opens_the_controls_as_in_the_foreground(
    environ: dict[str, str],
) -> None:
    said = nexus(environ, "start", "--detach", *QUICK).splitlines()
    try:
        url = nexus_json(environ, "status")["url"]
        assert said[0].startswith(f"The nexus is up: {url}  (stop it with: wsap nexus stop")
        address, _, key = (
            said[1].removeprefix("To see everything and control agents, open this once: ").partition("#key=")
        )
        assert address == url
        request = urllib.request.Request(
            f"{url}unlock", json.dumps({"key": key}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            token = json.loads(answer.read())["token"]
        assert token == (home(environ) / "nexus.token").read_text(encoding="ascii").strip()
        assert (home(environ) / "nexus.log").stat().st_mode & 0o077 == 0, "only its owner can read it there"
    finally:
        nexus(environ, "stop")


def test_all_that_is_said_of_how_it_is_run_goes_into_the_background_too() -> None:
    said = StartRequest(
        host="::1", port=7, expose=True, seed=3, pace=2.5, games=("echo", "matrix"), model="scripted/any", workers=2,
        worker_memory=512, game_hosts=("games.local", "10.0.0.7"), keep_days=1.5, keep_size=2_000_000_000,
        limits=("day.cost=2", "decision.calls=3"),
        worlds=("glade=meadow,ends=7", "village=sandbox:village"), as_json=False, database="x.db",
        living_in_workers=True, agent_options=("profile=brief",), backend_options=("num_ctx=9000",),
    )  # fmt: skip
    with start.make_context("start", words_of(said)) as context:
        context.params.pop("detach")
        assert StartRequest(**context.params) == said
    settings = settings_of(said)
    assert (settings.workers, settings.timeouts.memory) == (2, 512 * 1024 * 1024)
    assert (settings.limits.day.cost, settings.limits.decision.calls) == (2, 3)
    assert settings.game_hosts == ("games.local", "10.0.0.7")
    assert settings.worlds[0] == KeptWorld("glade", "meadow", {"ends": "7"})


def test_where_there_is_none_status_says_how_to_begin(environ: dict[str, str]) -> None:
    assert nexus(environ, "status").strip() == "There is no nexus yet; start one with: wsap nexus start"
    assert not home(environ).exists() or not (home(environ) / "wsap.db").exists()


def test_a_model_that_nothing_serves_is_told_before_anything_begins(environ: dict[str, str]) -> None:
    code, sentence = refused(environ, "start", *QUICK, "--model", "nobody/qwen3:8b")
    assert code == 2
    assert "nobody" in sentence
    assert not (home(environ) / "wsap.db").exists()


@pytest.mark.slow
def test_agents_of_a_nexus_with_a_model_are_decided_by_it(environ: dict[str, str]) -> None:
    with running(environ, *QUICK, "--model", "scripted/any") as hub:
        assert {a["decided_by"] for a in hub.status()["agents"]} == {"scripted/any"}


@pytest.mark.slow
def test_games_are_taken_offline_and_online(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        hub.someone_was_away()
        nexus(environ, "games", "offline", "echo", "--reason", "cleaning")
        (row,) = [r for r in nexus_json(environ, "games") if r["game"] == "echo"]
        assert (row["status"], row["reason"]) == ("offline", "cleaning")
        until(lambda: all(a["session"] is None for a in hub.status()["agents"]), "everybody's return")
        nexus(environ, "games", "online", "echo")
        until(lambda: any(a["session"] for a in hub.status()["agents"]), "somebody's going there again")
    code, sentence = refused(environ, "games", "offline", "ecco")
    assert code == 2
    assert "Did you mean 'echo'" in sentence


@pytest.mark.slow
def test_who_looks_on_does_not_keep_it_from_stopping(environ: dict[str, str]) -> None:
    with running(environ) as hub, urllib.request.urlopen(hub.ready["url"] + "nexus/events", timeout=300) as stream:
        assert stream.readline() == b": hello\n"
        hub.tell(signal.SIGTERM)
        code, errors = hub.ended()
        assert (code, len(errors.splitlines())) == (0, 1), errors
        assert stream.read() is not None, "and the stream is brought to its proper end"
