"""Clients that say nothing: a world that others live in waits for them for a while, and goes on without them then."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from life_kit import host_with, nexus_at
from living_worlds import MEADOW
from test_kept_worlds import Planter
from wire_server import PATIENCE, Served, serving

from wsap_core import AgentSpec
from wsap_core.protocol import Action, ActionResult, Observation
from wsap_nexus.cli.nexus.report import status_of
from wsap_nexus.cli.nexus.status import status_lines
from wsap_nexus.hub.nexus import Settings
from wsap_nexus.hub.outside.external import MISSED, ActionPendingError, ExternalAgent
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.play import loop
from wsap_nexus.store.entities import EntryRequest, Policy

VILLAGE = KeptWorld("village", "sandbox:village", {"language": "en"})
GLADE = KeptWorld("glade", "meadow")


@contextmanager
def nexus_with(folder: Path, *worlds: KeptWorld, patience: float = 0.3) -> Iterator[Served]:
    how = Settings(seed=7, lobby_seconds=0.05, pace=50.0, worlds=worlds, games=("echo", "matrix"), patience=patience)
    with serving(folder, host=host_with(MEADOW), settings=how) as served:
        yield served


def ticks(served: Served, run: str) -> list[int]:
    served.nexus.store.writer.flush()
    return [event.step or 0 for event in served.nexus.store.repository.read_events(run, kinds=("tick",))]


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        threading.Event().wait(0.02)


def ended(served: Served, agent: str) -> list[str | None]:
    with served.nexus.nexus_store.look() as tx:
        return [session.reason for session in tx.sessions(agent_id=agent) if session.closed]


def forced(served: Served, run: str, seat: str) -> list[bool]:
    """Return of each decision of a seat whether it was forced."""
    served.nexus.store.writer.flush()
    read = served.nexus.store.repository.read_events
    return [bool((e.data.get("decision") or {}).get("forced")) for e in read(run, kinds=("chosen",), seat=seat)]


def enter(client: Any, agent: str, game: str, **more: Any) -> str:
    arrived = client.post("/nexus/transit/enter", json={"agent_id": agent, "game": game, **more}, params={"wait": 60})
    assert arrived.status_code == 201, arrived.text
    return str(arrived.json()["bridge_url"])


@pytest.mark.slow
def test_a_village_goes_on_although_a_guest_says_nothing_and_the_character_lives_on_by_itself(tmp_path: Path) -> None:
    with nexus_with(tmp_path, VILLAGE) as served, served.register("mute") as mute:
        enter(mute, "mute", "sandbox:village", seat="gregory")
        until(lambda: ended(served, "mute") == ["silent"])
        left_at = ticks(served, "nexus-village")[-1]
        until(lambda: ticks(served, "nexus-village")[-1] >= left_at + 5)
        # The first missed deadline was answered with the default action of the seat, and the last with its end.
        assert set(forced(served, "nexus-village", "gregory")) == {True}
        served.nexus.store.writer.flush()
        newest = served.nexus.store.repository.last_event("nexus-village", "tick")
        assert newest is not None
        decided = {one["id"]: one["decided_by"] for one in newest.data["body"]["characters"]}
        assert decided["gregory"] == "model"
        assert mute.get("/nexus/agents/mute").json()["agent"]["place"] == "nexus"
        enter(mute, "mute", "sandbox:village", seat="gregory")  # it may come again


@pytest.mark.slow
def test_a_restarted_nexus_does_not_wait_for_a_silent_guest_either(tmp_path: Path) -> None:
    with nexus_with(tmp_path, VILLAGE, patience=PATIENCE) as served, served.register("mute") as mute:
        enter(mute, "mute", "sandbox:village", seat="gregory")
        before = ticks(served, "nexus-village")
    with nexus_with(tmp_path, VILLAGE) as served:
        until(lambda: ended(served, "mute") == ["silent"])
        until(lambda: ticks(served, "nexus-village")[-1] >= (before or [0])[-1] + 5)


@pytest.mark.slow
def test_a_guest_of_a_world_without_a_default_action_is_let_go_at_its_first_missed_deadline(tmp_path: Path) -> None:
    with nexus_with(tmp_path, GLADE) as served, served.register("mute") as mute:
        enter(mute, "mute", "meadow")
        until(lambda: ended(served, "mute") == ["silent"])
        left_at = ticks(served, "nexus-glade")[-1]
        until(lambda: ticks(served, "nexus-glade")[-1] >= left_at + 5)
        assert forced(served, "nexus-glade", "mute") == []
        assert served.nexus.nexus_store is not None
        with served.nexus.nexus_store.look() as tx:
            assert tx.agent("mute").state == "active"


@pytest.mark.slow
def test_a_slow_client_that_asks_now_and_then_is_not_let_go(tmp_path: Path) -> None:
    with nexus_with(tmp_path, VILLAGE) as served, served.register("slow") as slow:
        enter(slow, "slow", "sandbox:village", seat="gregory")
        while len(forced(served, "nexus-village", "gregory")) < 5:
            # On a quick machine it asks too often now and then.
            assert slow.get("/nexus/agents/slow/observation", params={"wait": 60}).status_code in (200, 429)
        assert ended(served, "slow") == []
        assert all(forced(served, "nexus-village", "gregory")[:5])
        while not ended(served, "slow"):  # but others do not wait for it again and again
            assert len(forced(served, "nexus-village", "gregory")) < MISSED
            slow.get("/nexus/agents/slow/observation", params={"wait": 1})
        assert ended(served, "slow") == ["silent"]


@pytest.mark.slow
def test_a_guest_who_only_does_what_is_refused_or_takes_no_step_holds_no_village(tmp_path: Path) -> None:
    with nexus_with(tmp_path, VILLAGE) as served, served.register("wrong") as wrong:
        enter(wrong, "wrong", "sandbox:village", seat="gregory")
        names = itertools.cycle(("fly", "inspect_self", "intend"))  # the last without what it needs
        while not ended(served, "wrong"):
            assert len(forced(served, "nexus-village", "gregory")) < 100 * MISSED
            seen = wrong.get("/nexus/agents/wrong/observation", params={"wait": 1})
            if seen.status_code == 200:
                wrong.post("/nexus/agents/wrong/act", json={"name": next(names), "parameters": {}}, params={"wait": 1})
        assert ended(served, "wrong") == ["silent"]
        late = [one for one in forced(served, "nexus-village", "gregory") if one]
        assert len(late) >= MISSED - 1  # each time the village went on
        assert wrong.get("/nexus/agents/wrong").json()["agent"]["state"] == "active"


@pytest.mark.slow
def test_it_is_told_who_waits_for_whom_but_only_to_the_owner(tmp_path: Path) -> None:
    with (
        nexus_with(tmp_path, VILLAGE, patience=PATIENCE) as served,
        served.register("ext-0") as mute,
        served.client() as owner,
        served.client("") as anybody,
    ):
        enter(mute, "ext-0", "sandbox:village", seat="gregory")
        until(lambda: owner.get("/nexus/health").json()["waits"])
        health = owner.get("/nexus/health").json()
        (wait,) = health["waits"]
        assert (wait["who"], wait["whom"], wait["kind"]) == ("village", "ext-0", "agent")
        assert re.fullmatch(r"village waits for ext-0 \(its decision, \d+ s\)", wait["text"])
        assert anybody.get("/nexus/health").json()["waits"] == []
        assert mute.get("/nexus/health").json()["waits"] == []
        lines = status_lines(status_of(served.nexus.store.database, None, "here", health=health))
        assert lines[lines.index("Waiting:") + 1] == f"  {wait['text']}"
        until(lambda: owner.get("/nexus/overview").json()["attention"])
        (told,) = owner.get("/nexus/overview").json()["attention"]
        assert told["what"].startswith("village waits for ext-0 (its decision, ")
        assert (told["kind"], told["id"]) == ("agent", "ext-0")
        assert anybody.get("/nexus/overview").json()["attention"] == []


@pytest.mark.slow
def test_the_others_of_a_game_without_a_deadline_do_not_wait_for_a_silent_client(tmp_path: Path) -> None:
    with nexus_with(tmp_path) as served, served.register("here") as here, served.register("mute") as mute:
        known = served.nexus.catalog
        known.known["matrix"] = replace(known.spec("matrix"), deadline=None)
        with ThreadPoolExecutor(2) as both:
            paths = list(both.map(lambda c: enter(c[0], c[1], "matrix"), ((here, "here"), (mute, "mute"))))
        for _ in range(4):
            seen = here.get(f"{paths[0]}/observation", params={"wait": 60})
            assert seen.status_code == 200, seen.text
            action = seen.json()["observation"]["available_actions"][0]["name"]
            acted = here.post(f"{paths[0]}/act", json={"name": action}, params={"wait": 60})
            assert acted.status_code == 200, acted.text
        until(lambda: ended(served, "mute") == ["silent"])
        assert ended(served, "here") == []


def test_a_client_of_a_world_of_its_own_may_be_silent_for_as_long_as_it_likes(tmp_path: Path) -> None:
    with nexus_with(tmp_path, patience=0.01) as served, served.register("alone") as alone:
        path = enter(alone, "alone", "echo")
        alone.get(f"{path}/observation")
        outside = served.nexus.live.external["alone"]
        assert outside.decisions == 0
        assert outside.deadline is None
        assert ended(served, "alone") == []


class Absorbed(Planter):
    """Thinks about its first result for ever."""

    async def reflect(self, result: ActionResult) -> None:
        await asyncio.Event().wait()


class Undecided(Planter):
    """Never decides in a meadow."""

    async def decide(self, observation: Observation) -> Action:  # type: ignore[override]
        if self._world == "meadow":
            await asyncio.Event().wait()
        return super().decide(observation)


@pytest.mark.parametrize(("agent", "why"), [(Absorbed, "reflected or planned"), (Undecided, "took longer")])
def test_a_world_does_not_wait_for_ever_for_an_agent_of_the_nexus_either(
    tmp_path: Path, agent: type[Planter], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "THOUGHT", 0.2)

    async def test() -> None:
        policies = {"ada": {"*": Policy("stuck"), "nexus": Policy("stuck")}}
        host = host_with(MEADOW, AgentSpec("stuck", "Is stuck.", agent))
        settings: dict[str, Any] = {"worlds": (GLADE,), "games": ("echo",), "pace": 400.0, "thinking": 0.2}
        async with nexus_at(tmp_path, policies, host=host, **settings) as place:
            await place.nexus.enter("ada", "meadow", EntryRequest(world="glade"))
            (failed,) = await place.until_events("agent_failed", agent="ada")
            assert why in failed.body["error"]
            await place.until_events("left", agent="ada")
            place.nexus.store.writer.flush()
            ticks = place.nexus.store.repository.last_event("nexus-glade", "tick")
            newest = 0 if ticks is None else ticks.step or 0

            def later() -> bool:
                place.nexus.store.writer.flush()
                found = place.nexus.store.repository.last_event("nexus-glade", "tick")
                return found is not None and (found.step or 0) >= newest + 5

            await place.until(later)

    asyncio.run(test())


def test_while_an_action_is_being_resolved_there_is_no_observation_to_decide_upon() -> None:
    async def turns() -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def play() -> None:
        seat = ExternalAgent()
        deciding = asyncio.create_task(seat.decide(Observation(step=1)))
        assert (await seat.observation()).step == 1
        acting = asyncio.create_task(seat.act(Action("noop")))
        await turns()
        assert deciding.done()
        asked = asyncio.create_task(seat.observation())
        await turns()
        assert not asked.done()
        assert seat.acting is not None
        with pytest.raises(ActionPendingError, match="wait for its next observation"):
            await seat.act(Action("noop"))
        seat.reflect(ActionResult(True, "", observation=Observation(step=2)))
        assert (await acting).success
        assert seat.acting is None
        deciding = asyncio.create_task(seat.decide(Observation(step=2)))
        assert (await asked).step == 2
        deciding.cancel()

    asyncio.run(play())
