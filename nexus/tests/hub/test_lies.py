"""Games in other processes that lie, are silent or busy: they are to blame, and their agents lose no items by it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import hub_checks
import hub_kit
import pytest
from lies import Liar, lying
from test_far import ITEM, TOKEN, Process, arrive, far_world, process
from wire_server import PATIENCE, Served, problem, serving

from wsap_core.protocol import Action
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.nexus import Settings
from wsap_nexus.hub.transit import patience
from wsap_nexus.hub.waiting.waits import waits
from wsap_nexus.worlds.remote import game_client, http_lines
from wsap_nexus.worlds.remote.game_client import GameBusyError, GameLostError, GameTimeouts

# Any, in this module: JSON.


@pytest.fixture
def game() -> Iterator[Process]:
    with process() as running:
        yield running


@pytest.fixture
def liar(game: Process) -> Iterator[Liar]:
    with lying(game.url) as proxy:
        yield proxy


# --- the client -----------------------------------------------------------------------------------------


def asked(liar: Liar, how: str, times: int, **timeouts: float) -> tuple[Any, list[float]]:
    """Return what a client hears of a game that lies about its description, and how long it has paused."""

    async def play() -> tuple[Any, list[float]]:
        paused: list[float] = []

        async def pause(seconds: float) -> None:
            paused.append(seconds)

        client = game_client.GameClient(liar.url, TOKEN, sleep=pause, timeouts=GameTimeouts(**timeouts))
        try:
            liar.lie("root", how, times)
            return await client.ask("GET", "/"), paused
        finally:
            await client.close()

    return asyncio.run(play())


@pytest.mark.parametrize("how", ["429 again", "503 again", "500 again"])
def test_a_game_that_asks_for_a_later_repetition_is_asked_again_after_the_time_it_names(liar: Liar, how: str) -> None:
    told, paused = asked(liar, how, 2)
    assert told["game"]["name"] == "far-quarry"
    assert paused == [1.0, 1.0]


def test_a_game_that_is_never_ready_fails_after_some_time(liar: Liar) -> None:
    with pytest.raises(GameBusyError, match="is not ready: <b>boom</b>"):
        asked(liar, "503 again", -1, busy=5.0)
    assert len(liar.asked) == 5  # after 0, 1, 2, 3 and 4 s; the next pause would be too long


@pytest.mark.slow
@pytest.mark.parametrize("how", ["500", "plain 500", "400", "redirect", "malformed", "html", "list", "deep"])
def test_any_other_refusal_is_the_failure_of_the_game_at_once(liar: Liar, how: str) -> None:
    with pytest.raises(WorldFailedError):
        asked(liar, how, 1)
    assert len(liar.asked) == 1


def test_a_game_that_says_wait_at_once_is_asked_again_with_growing_pauses(liar: Liar) -> None:
    told, paused = asked(liar, "202", 7)
    assert told["game"]["name"] == "far-quarry"
    waited = [round(pause, 1) for pause in paused]
    assert len(waited) == 7
    assert waited[-1] > 1.5
    assert waited == sorted(waited)


def test_a_response_that_never_becomes_whole_is_given_up(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_client, "_EXCHANGE", 0.3)
    with pytest.raises(GameLostError, match=r"no whole response within 0\.3 s"):
        asked(liar, "drip", -1, seconds=0.5)


def test_no_request_waits_without_an_end(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        client = game_client.GameClient(liar.url, TOKEN)
        liar.lie("root", "hang", -1)
        with pytest.raises(GameLostError, match=r"did not answer GET / within 0.3 s"):
            await client.ask("GET", "/", within=0.3)
        await client.close()

    asyncio.run(play())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["of another", "an older one", "another request", "no request"])
def test_the_reply_to_another_request_is_not_believed(liar: Liar, how: str) -> None:
    async def play() -> None:
        worlds = [await far_world(liar.url, number) for number in (1, 2)]
        seats = [await arrive(world) for world, _ in worlds]
        for seat in seats:
            await seat.observe()
            await seat.step(Action("dig"))
        liar.lie("act", how)
        await seats[0].observe()
        with pytest.raises(WorldFailedError, match=r"to POST \S+/act names (no|another) request"):
            await seats[0].step(Action("dig"))
        liar.lie("observation", "of another")
        with pytest.raises(WorldFailedError, match=r"to GET \S+/observation names another request"):
            await seats[1].observe()
        for world, client in worlds:
            await world.close()
            await client.close()

    asyncio.run(play())


# --- in a nexus -----------------------------------------------------------------------------------------


@contextmanager
def nexus_with(folder: Path, liar: Liar, **settings: Any) -> Iterator[Served]:
    """Give a nexus with the game behind the liar."""
    with ExitStack() as stack:
        how = Settings(seed=7, lobby_seconds=0.05, games=("echo",), max_failures=10**6, **settings)
        served = stack.enter_context(serving(folder, host=hub_kit.host(), settings=how))
        with served.client() as owner:
            joined = owner.post("/nexus/games", json={"base_url": liar.url, "token": TOKEN})
            assert joined.status_code == 201, joined.text
        try:
            yield served
        finally:
            liar.be_honest()


def give(served: Served, agent: str) -> None:
    with served.nexus.nexus_store.change() as tx:
        tx.mint_item(agent, ITEM, game="crafter", session="before")


def place(served: Served, agent: str) -> str:
    with served.nexus.nexus_store.look() as tx:
        return tx.agent(agent).place


def where(served: Served, agent: str) -> dict[str, str]:
    with served.nexus.nexus_store.look() as tx:
        return {record.item.item_id: record.place for record in tx.items(agent)}


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        threading.Event().wait(0.02)


def enter(client: Any, agent: str) -> str:
    arrived = client.post("/nexus/transit/enter", json={"agent_id": agent, "game": "far-quarry"}, params={"wait": 60})
    assert arrived.status_code == 201, arrived.text
    return str(arrived.json()["bridge_url"])


def sound(served: Served) -> None:
    served.nexus.store.writer.flush()
    assert list(hub_checks.problems(served.nexus.store.database)) == []


@pytest.mark.parametrize(
    ("route", "how"),
    [
        ("act", "reward NaN"),
        ("act", "400"),
        ("act", "of another"),
        *(
            pytest.param(route, how, marks=pytest.mark.slow)
            for route, how in (
                ("act", "reward 1e999"),
                ("act", "reward text"),
                ("act", "step backwards"),
                ("observation", "inventory list"),
                ("observation", "observation list"),
            )
        ),
    ],
)
def test_whatever_a_game_sends_is_the_fault_of_the_game_and_never_of_its_agent(
    tmp_path: Path, liar: Liar, route: str, how: str
) -> None:
    with nexus_with(tmp_path, liar) as served, served.register("eve") as eve:
        give(served, "eve")
        path = enter(eve, "eve")
        assert eve.post(f"{path}/act", json={"name": "dig"}).status_code == 200
        assert eve.get(f"{path}/observation").status_code == 200
        liar.lie(route, how)
        eve.post(f"{path}/act", json={"name": "dig"})
        until(lambda: place(served, "eve") == "nexus")
        with served.nexus.nexus_store.look() as tx:
            (session,) = tx.sessions(agent_id="eve")
            (crashed,) = tx.events(kinds=("world_crashed",), limit=10)
            assert tx.events(kinds=("agent_failed",), limit=10) == []
            assert tx.agent("eve").state == "active"
        assert session.reason == "world_failed"
        assert "'far-quarry'" in crashed.body["error"] or liar.url in crashed.body["error"]
        assert where(served, "eve") == {"rope-1": "world"}
        path = enter(eve, "eve")  # and it can go there again, to the same body with the same things
        assert eve.post(f"{path}/jack-out", json={}).status_code == 200
        assert where(served, "eve")["rope-1"] == "escrow"
        sound(served)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["429 again", "503 again"])
def test_an_agent_notices_nothing_of_a_game_that_is_busy_for_a_moment(tmp_path: Path, liar: Liar, how: str) -> None:
    with nexus_with(tmp_path, liar) as served, served.register("eve") as eve:
        path = enter(eve, "eve")
        for route in ("act", "observation"):
            liar.lie(route, how)
            acted = eve.post(f"{path}/act", json={"name": "dig"}, params={"wait": 60})
            assert acted.status_code == 200, acted.text
            assert eve.get(f"{path}/observation", params={"wait": 60}).status_code == 200
            assert liar.told
        liar.lie("release", how)
        assert eve.post(f"{path}/jack-out", json={}, params={"wait": 60}).status_code == 200
        sound(served)


@pytest.mark.slow
@pytest.mark.parametrize("route", ["release", "avatars", "jack-out"])
def test_an_agent_comes_home_from_a_game_that_never_lets_it_go(
    tmp_path: Path, liar: Liar, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nexus_with(tmp_path, liar) as served, served.register("eve") as eve, served.client() as owner:
        give(served, "eve")
        enter(eve, "eve")
        monkeypatch.setattr(patience, "PASSAGE", 0.5)
        monkeypatch.setattr(patience, "INSISTED", 0.5)
        liar.lie(route, "hang", -1)
        left = owner.post("/nexus/transit/exit", json={"agent_id": "eve", "force": True}, params={"wait": 60})
        assert left.status_code == 200, left.text
        assert left.json()["session"]["reason"] == "world_failed"
        assert place(served, "eve") == "nexus"
        assert where(served, "eve") == {"rope-1": "world"}
        sound(served)
        liar.be_honest()
        monkeypatch.setattr(patience, "PASSAGE", PATIENCE)
        path = enter(eve, "eve")
        assert eve.post(f"{path}/jack-out", json={}).status_code == 200
        assert where(served, "eve")["rope-1"] == "escrow"
        sound(served)


def away(served: Served, by: str) -> None:
    """Do what a person does to have an agent back."""
    with served.client() as owner:
        if by == "recall":
            owner.post("/nexus/transit/exit", json={"agent_id": "eve", "force": True}, params={"wait": 0})
        else:
            owner.put("/nexus/games/far-quarry/status", json={"status": "offline", "reason": "it hangs"})


@pytest.mark.slow
@pytest.mark.parametrize("by", ["recall", "offline"])
def test_one_command_brings_an_agent_home_that_a_game_holds_while_it_leaves(
    tmp_path: Path, liar: Liar, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PASSAGE", PATIENCE)
    monkeypatch.setattr(patience, "INSISTED", 0.2)
    with nexus_with(tmp_path, liar) as served, served.register("eve") as eve:
        give(served, "eve")
        path = enter(eve, "eve")
        liar.lie("release", "hang", -1)
        assert eve.post(f"{path}/jack-out", json={}, params={"wait": 0}).status_code == 202
        until(lambda: "release" in liar.asked)
        assert place(served, "eve") == "world"
        assert [wait.text.partition(",")[0] for wait in waits(served.nexus.live, 0.0)] == [
            "eve waits for far-quarry (to be let go"
        ]
        away(served, by)
        until(lambda: place(served, "eve") == "nexus")
        assert where(served, "eve") == {"rope-1": "world"}
        sound(served)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["recall", "offline"])
def test_one_command_calls_off_an_entry_into_a_game_that_does_not_answer(
    tmp_path: Path, liar: Liar, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "INSISTED", 0.2)
    with nexus_with(tmp_path, liar) as served, served.register("eve") as eve:
        give(served, "eve")
        liar.lie("admit", "hang", -1)
        way = {"agent_id": "eve", "game": "far-quarry"}
        assert eve.post("/nexus/transit/enter", json=way, params={"wait": 0}).status_code == 202
        until(lambda: "admit" in liar.asked)
        assert [wait.text.partition(",")[0] for wait in waits(served.nexus.live, 0.0)] == [
            "eve waits for far-quarry (to be let in"
        ]
        away(served, by)

        def unresolved() -> int:
            with served.nexus.nexus_store.look() as tx:
                return len(tx.transfers("unknown"))

        until(unresolved)
        assert where(served, "eve") == {"rope-1": "transfer"}
        liar.be_honest()
        until(lambda: served.in_loop(served.nexus.remote_games.settle()) == 0)
        assert where(served, "eve") == {"rope-1": "escrow"}
        sound(served)


@pytest.mark.slow
def test_while_a_game_does_not_answer_an_action_its_client_is_told_to_wait(tmp_path: Path, liar: Liar) -> None:
    with nexus_with(tmp_path, liar) as served, served.register("eve") as eve, served.client() as owner:
        path = enter(eve, "eve")
        liar.lie("act", "hang", -1)
        key = {"Idempotency-Key": "one"}
        assert eve.post(f"{path}/act", json={"name": "dig"}, headers=key, params={"wait": 0}).status_code == 202
        until(lambda: "act" in liar.asked)
        (wait,) = waits(served.nexus.live, 0.0)
        assert (wait.who, wait.whom, wait.what) == ("eve", "far-quarry", "resolve of 'eve'")
        for _ in range(3):
            assert eve.get(f"{path}/observation", params={"wait": 0}).status_code == 202
            assert eve.post(f"{path}/act", json={"name": "dig"}, headers=key, params={"wait": 0}).status_code == 202
            assert problem(eve.post(f"{path}/act", json={"name": "dig"})) == (409, "ACTION_PENDING")
        left = owner.post("/nexus/transit/exit", json={"agent_id": "eve", "force": True}, params={"wait": 60})
        assert left.status_code == 200, left.text
        assert place(served, "eve") == "nexus"
        sound(served)


@pytest.mark.slow
def test_a_call_that_a_game_never_answers_ends_the_session(
    tmp_path: Path, liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_lines, "SECONDS", 1.0)
    with nexus_with(tmp_path, liar) as served, served.register("eve") as eve:
        give(served, "eve")
        path = enter(eve, "eve")
        liar.lie("act", "202", -1)
        eve.post(f"{path}/act", json={"name": "dig"}, params={"wait": 60})
        until(lambda: place(served, "eve") == "nexus")
        assert where(served, "eve") == {"rope-1": "world"}
        with served.nexus.nexus_store.look() as tx:
            (crashed,) = tx.events(kinds=("world_crashed",), limit=10)
        assert "did not answer resolve within 1 s" in crashed.body["error"]
        sound(served)
