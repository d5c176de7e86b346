"""The client: the seed's retry policy, what is sent twice and what never, and answers that no bridge should give."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from test_tes3mp_log import commanded, perceived

from wsap_core.errors import UsageError
from wsap_nexus.http.errors import error_body
from wsap_nexus.http.retries import Retries, Tries
from wsap_nexus.state import Running, birth, write
from wsap_tes3mp.client import BridgeClient, BridgeRefusedError, local_token
from wsap_tes3mp.paths import serving_file
from wsap_tes3mp.protocol.errors import (
    SEED_CODES,
    BridgeError,
    BridgeInternalError,
    BridgeUnavailableError,
    CommandConflictError,
    InvalidCommandError,
    NotOfferedError,
    SchemaMismatchError,
    UnknownOutcomeError,
)

Answer = httpx2.Response | Exception
ACCEPTED = httpx2.Response(202, json={"status": "accepted", "command_id": "cmd_abc123", "logged": True})
LOST = httpx2.ReadError("reset by peer")
SLOW = httpx2.ReadTimeout("")
DOWN = httpx2.ConnectError("refused")


def refusal(status: int, code: str, **more: Any) -> httpx2.Response:
    """Return the seed's envelope."""
    return httpx2.Response(status, json=error_body(code, "No.") | {}, **more)


class Bridge:
    """A bridge that gives the answers that it is told, one after another, and notes what it was asked."""

    def __init__(self, *answers: Answer, ours: bool = False, status: dict[str, Any] | None = None) -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []
        self.waits: list[float] = []
        self.chances = [0.5]
        self.time = 0.0
        self.status = status or {
            "bridge_connected": True, "engine": "tes3mp", "protocol_version": "1.1.0" if ours else "1.0.0",
            "uptime_seconds": 3600, "last_perception_at": "2026-03-21T14:30:00Z",
            **({"abilities": []} if ours else {}),
        }  # fmt: skip

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))
        self.time += seconds

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/morrowind/status":
            return httpx2.Response(200, json=self.status)
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, content=answer.content, headers=answer.headers)

    def client(self, **options: Any) -> BridgeClient:
        numbers = iter(range(1000))
        return BridgeClient(
            "http://bridge.test",
            clock=self,
            chance=lambda: self.chances[0],
            keys=lambda: f"key{next(numbers)}",
            transport=httpx2.MockTransport(self.answer),
            **options,
        )

    def do(self, what: Callable[[BridgeClient], Coroutine[Any, Any, Any]]) -> Any:
        async def scenario() -> Any:
            async with self.client() as client:
                return await what(client)

        return asyncio.run(scenario())

    def command(self) -> Any:
        return self.do(lambda client: client.command(commanded()))


def seen(**changes: Any) -> httpx2.Response:
    return httpx2.Response(200, json={**json.loads(perceived().model_dump_json(exclude_none=True)), **changes})


@pytest.mark.parametrize("error", SEED_CODES, ids=lambda error: error.code)
def test_only_codes_that_are_marked_retryable_are_tried_again_with_the_seeds_pauses(error: type[BridgeError]) -> None:
    bridge = Bridge(refusal(error.http_status, error.code, headers={"Retry-After": "1"}))
    with pytest.raises(error):
        bridge.do(lambda client: client.perception("mira"))
    assert bridge.waits == ([0.1, 0.2, 0.4, 0.8, 1.6] if error.retryable else [])
    assert len(bridge.asked) == 1 + len(bridge.waits)


@given(tries=st.integers(1, 12), chance=st.floats(0, 1))
def test_a_pause_doubles_up_to_five_seconds_and_is_off_by_50_ms_at_most(tries: int, chance: float) -> None:
    plain = min(5.0, 0.1 * 2 ** (tries - 1))
    assert abs(Retries().pause(tries, chance) - plain) <= 0.05 + 1e-9


@given(repeatable=st.booleans(), kinds=st.lists(st.sampled_from(["lost", "down", "busy", "no"]), max_size=9))
def test_a_request_is_tried_six_times_at_most_and_what_may_have_been_done_never_again(
    repeatable: bool, kinds: list[str]
) -> None:
    tries = Tries(Retries(), repeatable=repeatable, chance=lambda: 0.5)
    for count, kind in enumerate(kinds, 1):
        wait = (
            tries.unanswered(LOST if kind == "lost" else DOWN)
            if kind in ("lost", "down")
            else tries.refused(retryable=kind == "busy")
        )
        may = {"lost": repeatable, "down": True, "busy": True, "no": False}[kind] and count <= 5
        assert (wait is not None) == may
        if not may:
            break


@pytest.mark.parametrize("answer", [
    LOST, SLOW, httpx2.Response(202, text="<html>"), httpx2.Response(202, json={}), refusal(500, "INTERNAL_ERROR"),
    httpx2.Response(502, text="bad gateway"),
])  # fmt: skip
def test_a_command_to_a_bare_bridge_without_a_clear_answer_is_unknown_and_not_sent_again(answer: Answer) -> None:
    bridge = Bridge(answer)
    with pytest.raises(UnknownOutcomeError):
        bridge.command()
    assert len(bridge.asked) == 1
    assert "idempotency-key" not in bridge.asked[0].headers


def test_a_command_that_a_bare_bridge_refuses_for_now_or_never_got_is_sent_again() -> None:
    bridge = Bridge(refusal(409, "COMMAND_CONFLICT"), DOWN, refusal(503, "BRIDGE_UNAVAILABLE"), ACCEPTED)
    assert bridge.command().command_id == "cmd_abc123"
    assert bridge.waits == [0.1, 0.2, 0.4]


def test_a_bare_bridge_hears_nothing_of_1_1_0() -> None:
    bridge = Bridge(ACCEPTED)
    context = {"heartbeat_cycle": 3, "perception_sequence": 9}
    bridge.do(lambda client: client.command(commanded(context=context)))
    sent = json.loads(bridge.asked[0].content)
    assert (sent["protocol_version"], sent["context"]) == ("1.0.0", {"heartbeat_cycle": 3})
    with pytest.raises(NotOfferedError):
        bridge.do(lambda client: client.outcome("cmd_abc123"))


def test_a_command_to_our_bridge_is_repeated_under_one_key_until_an_answer_comes() -> None:
    bridge = Bridge(LOST, SLOW, refusal(503, "BRIDGE_UNAVAILABLE"), ACCEPTED, ours=True)
    assert bridge.command().command_id == "cmd_abc123"
    assert [request.headers["idempotency-key"] for request in bridge.asked] == ["key0"] * 4


def test_a_command_whose_answers_are_all_lost_is_unknown_even_with_a_key() -> None:
    bridge = Bridge(LOST, DOWN, ours=True)
    with pytest.raises(UnknownOutcomeError):
        bridge.command()
    assert len(bridge.asked) == 6
    with pytest.raises(BridgeUnavailableError):
        Bridge(DOWN, ours=True).command()


def test_500_is_not_tried_again_for_a_command() -> None:
    bridge = Bridge(refusal(500, "INTERNAL_ERROR"), ACCEPTED, ours=True)
    with pytest.raises(BridgeInternalError):
        bridge.command()
    assert len(bridge.asked) == 1


def test_a_command_is_not_repeated_to_a_bare_bridge_that_took_the_place_of_ours() -> None:
    bridge = Bridge(LOST, ACCEPTED, ours=True)
    swapped = {**bridge.status, "abilities": None}

    def answer(request: httpx2.Request) -> httpx2.Response:
        try:
            return Bridge.answer(bridge, request)
        except httpx2.ReadError:
            bridge.status = swapped
            raise

    bridge.answer = answer  # type: ignore[method-assign]
    with pytest.raises(UnknownOutcomeError):
        bridge.command()
    assert len(bridge.asked) == 1


def test_a_bridge_that_is_not_there_is_unavailable_after_six_tries() -> None:
    bridge = Bridge(DOWN)
    with pytest.raises(BridgeUnavailableError, match=r"http://bridge\.test does not answer"):
        bridge.do(lambda client: client.perception())
    assert len(bridge.asked) == 6


def test_a_newer_minor_version_is_read_with_its_unknown_fields_and_kinds() -> None:
    entity = {"entity_id": "v1", "name": "Boat", "entity_type": "vehicle", "distance": 3, "colour": "red"}
    bridge = Bridge(seen(protocol_version="1.9.3", nearby_entities=[entity], moons=2))
    found = bridge.do(lambda client: client.perception("mira"))
    assert found.nearby_entities[0].entity_type == "vehicle"


@pytest.mark.parametrize("answer", [
    seen(protocol_version="2.0.0"), seen(protocol_version=None), seen(protocol_version="one"), seen(agent_id="odo"),
    seen(timestamp="2026-03-21T14:30:00"), seen(health={"current": 3, "max": 1}), httpx2.Response(200, text="hello"),
    httpx2.Response(200, text="[1]"), httpx2.Response(200, text='{"x": NaN}'), httpx2.Response(302, text=""),
    httpx2.Response(200, content=b"\xff\xfe"), httpx2.Response(200, text="[" * 100_000),
])  # fmt: skip
def test_perceptions_that_do_not_fit_are_a_schema_mismatch_and_not_asked_for_again(answer: httpx2.Response) -> None:
    bridge = Bridge(answer)
    with pytest.raises(SchemaMismatchError):
        bridge.do(lambda client: client.perception("mira"))
    assert len(bridge.asked) == 1


def test_a_newer_major_version_of_the_status_is_refused() -> None:
    bridge = Bridge(ACCEPTED)
    bridge.status = {**bridge.status, "protocol_version": "2.0.0"}
    with pytest.raises(SchemaMismatchError, match="speaks protocol"):
        bridge.command()
    assert bridge.asked == []


def test_codes_of_the_bridges_own_keep_their_words_and_their_pause() -> None:
    body = error_body("RATE_LIMITED", "Too fast.\x1b[2J", retry=True)
    bridge = Bridge(httpx2.Response(429, json=body, headers={"Retry-After": "3"}), ACCEPTED)
    bridge.command()
    assert bridge.waits == [3.0]
    bridge = Bridge(httpx2.Response(401, json=error_body("UNAUTHORIZED", "The token is wrong.")))
    with pytest.raises(BridgeRefusedError, match="The token is wrong") as caught:
        bridge.command()
    assert (caught.value.told, caught.value.status) == ("UNAUTHORIZED", 401)


def test_an_outcome_is_waited_for_in_pieces() -> None:
    def state(state: str) -> httpx2.Response:
        return httpx2.Response(200, json={"command_id": "c", "agent_id": "mira", "state": state})

    bridge = Bridge(state("dispatched"), state("dispatched"), state("confirmed"), ours=True)
    assert bridge.do(lambda client: client.outcome("c", wait=60)).state == "confirmed"
    assert [request.url.params["wait"] for request in bridge.asked] == ["20.0"] * 3
    bridge = Bridge(state("dispatched"), ours=True)
    assert bridge.do(lambda client: client.outcome("c")).state == "dispatched"


def test_the_errors_of_the_seed_come_back_as_themselves() -> None:
    for error in (InvalidCommandError, CommandConflictError):
        with pytest.raises(error):
            Bridge(refusal(error.http_status, error.code)).command()


@pytest.mark.parametrize("url", ["", "bridge", "ftp://x", "http://", "http://user:pw@host", "http://[", "http://a b"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="Invalid bridge address"):
        BridgeClient(url)


def test_only_the_bridge_that_runs_here_gets_the_token_of_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    near = "http://127.0.0.1:8765"
    assert local_token(near) is None
    (tmp_path / "tes3mp").mkdir()
    (tmp_path / "tes3mp" / "token").write_text("secret-of-here\n")
    assert local_token(near) is None  # nothing says that a bridge of ours is there
    alive = Running(os.getpid(), birth(os.getpid()), f"{near}/", 0.0, "commands.sqlite")
    write(serving_file(8765), alive)
    assert [local_token(url) for url in (near, "http://localhost:8765/")] == ["secret-of-here"] * 2
    assert local_token("http://127.0.0.1:8766") is None
    assert local_token("http://192.168.0.7:8765") is None
    write(serving_file(8765), replace(alive, born="another process"))  # it was killed, and its port may be anybody's
    assert local_token(near) is None


@pytest.mark.slow
def test_serve_writes_itself_down_as_long_as_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    words = ["tes3mp", "serve", "--port", "0", "--json"]
    with subprocess.Popen([sys.executable, "-m", "wsap_core", *words], stdout=subprocess.PIPE, text=True) as bridge:
        assert bridge.stdout is not None
        said = json.loads(bridge.stdout.readline())
        try:
            token = Path(said["token_file"]).read_text().strip()
            assert local_token(said["url"]) == token
            if os.name == "posix":
                assert [path.stat().st_mode & 0o077 for path in (tmp_path / "tes3mp").glob("bridge-*")] == [0]
        finally:
            bridge.send_signal(signal.SIGINT)
        bridge.wait(120)
    assert local_token(said["url"]) is None
    assert not list((tmp_path / "tes3mp").glob("bridge-*"))
