"""Thousands of agents come to life in groups when a nexus starts, and requests are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from life_kit import host_with, nexus_at

from wsap_core.builtin.random_agents import AlwaysAgent
from wsap_core.protocol import Action, Observation
from wsap_core.specs import AgentSpec
from wsap_nexus.hub import scheduler
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.store.entities import Policy

pytestmark = pytest.mark.every_database

AGENTS = {f"agent-{number:02d}": {"*": Policy("watcher")} for number in range(40)}


class Watcher(AlwaysAgent):
    """Waits in the nexus, and tells of its decisions."""

    def __init__(self, deciding: Callable[[], None]) -> None:
        super().__init__("wait_for_game")
        self._deciding = deciding

    def decide(self, observation: Observation) -> Action:
        self._deciding()
        return Action("wait_for_game", {"timeout": 600})


def started(tmp_path: Path, until: Callable[[Nexus, list[int]], bool]) -> tuple[list[int], list[int], list[int]]:
    """Start a nexus; return how many agents lived at each decision and at each turn of the event loop, and the turns
    of the decisions.
    """

    async def test() -> tuple[list[int], list[int], list[int]]:
        decided: list[int] = []
        host = host_with(AgentSpec("watcher", "Watches.", lambda: Watcher(lambda: deciding())))
        turns: list[int] = []
        async with nexus_at(tmp_path, AGENTS, host=host, start=False, pace=1000.0) as place:
            nexus = place.nexus

            def living() -> int:
                return len(nexus.live.visits)

            def deciding() -> None:
                decided.append(living())
                at.append(len(turns))

            at: list[int] = []
            await nexus.start()
            while not until(nexus, decided):
                turns.append(living())
                await asyncio.sleep(0)
            await nexus.stop()
        return decided, turns, at

    return asyncio.run(test())


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "AT_ONCE", 7)
    monkeypatch.setattr(scheduler, "TOGETHER", 4)


def test_none_decides_before_all_are_there_and_all_then_do(tmp_path: Path) -> None:
    decided, turns, at = started(tmp_path, lambda _, decided: len(decided) >= len(AGENTS))
    # The last group has not waited; of those that did, one decides in a turn.
    assert max(Counter(at).values()) <= 4 + 1, "between decisions there are turns for requests"
    assert decided == [len(AGENTS)] * len(AGENTS)
    steps = [after - before for before, after in pairwise(turns)]
    assert max(steps) <= 7, "between two groups there is a turn for requests"


@pytest.mark.slow
def test_those_who_are_there_decide_after_a_while_though_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "WAIT_MOST", 0.0)
    decided, *_ = started(tmp_path, lambda _, decided: len(decided) >= len(AGENTS))
    assert decided[0] < len(AGENTS)


def test_a_nexus_can_be_stopped_while_its_agents_come_to_life(tmp_path: Path) -> None:
    decided, turns, _ = started(tmp_path, lambda nexus, _: len(nexus.live.visits) >= 12)
    assert not decided
    assert max(turns) < len(AGENTS)
