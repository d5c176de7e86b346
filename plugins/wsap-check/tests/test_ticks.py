"""The checks of worlds that live: a sound one passes, and each fault is found by the check that is about it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping

import pytest

from wsap_check import run_checks
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, AdapterSpec, Observation
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import Tick
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context

SPACE = ActionSpace((ActionDef("float", "Drift along"), ActionDef("row", "Row against it")))


class Tide:
    """A tide that comes and goes; a boat rows with it once a tick, if somebody sits in it."""

    game_description = "A boat on the tide."
    action_space = SPACE

    def __init__(self, context: Context) -> None:
        self._seed, self._manned = context.seed, False
        self.reset()

    def reset(self, seed: int | None = None) -> Observation:
        self._seed = self._seed if seed is None else seed
        self.number, self.height, self._stones = 0, self._seed % 7, 0
        self._chosen, self._told = None, None
        self._news = asyncio.Event()
        return self.seen()

    def seat(self, agent_id: str) -> Tide:
        self._manned = True
        return Boat(self)

    def observe(self) -> Observation:
        raise UsageError("Observe through a seat.")

    def seen(self) -> Observation:
        return Observation(status={"height": self.height}, step=self.number)

    def act(self, action: Action) -> ActionResult:
        raise UsageError("Act through a seat.")

    def influence(self, body: Mapping[str, JsonValue]) -> str:
        if body.get("kind") != "stone":
            raise UsageError("Only a stone can be thrown.")
        self._stones += 1
        return "A stone falls into the water."

    async def advance(self) -> Tick:
        while self._manned and self._chosen is None:
            self._news.clear()
            await self._news.wait()
        action, self._chosen = self._chosen, None
        self.number += 1
        self.height = (self.height * 5 + 3 + self._stones + (action == "row")) % 17
        if self._told is not None:
            self._told.set_result(None)
            self._told = None
        return Tick(self.number, {"height": self.height})

    async def row(self, action: Action) -> ActionResult:
        if self._chosen is not None or action.name not in SPACE.names or action.parameters:
            return ActionResult(False, "Not so.", observation=self.seen())
        self._told = asyncio.get_running_loop().create_future()
        self._chosen = action.name
        self._news.set()
        await self._told
        return ActionResult(True, observation=self.seen())

    def snapshot(self) -> bytes:
        return json.dumps([self._seed, self.number, self.height, self._stones]).encode()

    def restore(self, data: bytes) -> None:
        try:
            seed, number, height, stones = json.loads(data)
        except (ValueError, TypeError, RecursionError) as error:
            raise SnapshotError("This is no tide.") from error
        if not all(type(n) is int for n in (seed, number, height, stones)):
            raise SnapshotError("This is no tide.")
        self._seed, self.number, self.height, self._stones = seed, number, height, stones


class Boat(Tide):
    """The seat."""

    def __init__(self, tide: Tide) -> None:
        self._tide = tide

    def observe(self) -> Observation:
        return self._tide.seen()

    async def act(self, action: Action) -> ActionResult:  # type: ignore[override]
        return await self._tide.row(action)

    def reset(self, seed: int | None = None) -> Observation:
        raise UsageError("A boat does not reset the tide.")


class Forgetful(Tide):
    def snapshot(self) -> bytes:
        return json.dumps([self._seed, self.number, 0, self._stones]).encode()


class Chancy(Tide):
    chance = itertools.count()

    async def advance(self) -> Tick:
        return Tick((await super().advance()).number, {"height": next(self.chance)})


class Gullible(Tide):
    def influence(self, body: Mapping[str, JsonValue]) -> str:
        self._stones += 1
        return "As you like."


class Stubborn(Tide):
    async def advance(self) -> Tick:
        return Tick(1 + (await super().advance()).number)


def spec(tide: type[Tide]) -> AdapterSpec:
    return AdapterSpec(
        "tide",
        "A tide.",
        tide,
        abilities=("seed", "snapshot", "multi-seat", "lives", "influence"),
        seats=(0, 2),
        timing="simultaneous",
    )


@pytest.mark.slow
def test_a_sound_world_that_lives_has_no_finding() -> None:
    report = run_checks(spec(Tide), steps=20, subprocesses=False)
    assert report.ok, report.to_text()


@pytest.mark.parametrize(
    ("tide", "check"),
    [
        (Forgetful, "ticks-continue"),
        (Chancy, "ticks"),
        (Gullible, "refused-influence"),
        (Stubborn, "ticks"),
    ],
)
def test_a_fault_is_found_by_the_check_about_it(tide: type[Tide], check: str) -> None:
    names = ["ticks", "ticks-continue", "refused-influence"]
    report = run_checks(spec(tide), steps=20, only=names)
    assert check in {finding.check for finding in report.findings}, report.to_text()
