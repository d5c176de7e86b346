"""What a prompt names is what the reply is bound to: for all installed games, in all styles, with both profiles."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from told_and_bound import ABILITIES, Player

from wsap_core import PluginHost
from wsap_core.host import Registration
from wsap_core.seams.services import Services
from wsap_core.specs import BackendSpec
from wsap_llm import agent
from wsap_llm.backends.pool import ModelPool
from wsap_llm.decision.offers import offerable
from wsap_nexus import read_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store

GAMES = {
    "crafter": ("seat-1",), "minigrid": ("seat-1",), "echo": ("seat-1",), "morrowind": ("seat-1",),
    "matrix": ("row", "column"), "matrix-turns": ("row", "column"), "matrix-free": ("row", "column"),
    "village": ("anna",),
}  # fmt: skip
"""Game -> the seats that a model plays; of ToSSim, the tests of its turns tell."""
NOT_DECLARED = re.compile("There is no action|is not right:|has no parameter|There is nobody")
"""Refusals of what the game does not declare."""


def play(
    monkeypatch: pytest.MonkeyPatch, host: PluginHost, folder: Path, game: str, style: str, profile: str, **options: str
) -> Player:
    """Play a few steps with a model that is asked in a style, and return it."""
    player = Player(style, seed=len(game) + len(profile))
    spec = BackendSpec("player", "", lambda context: player)
    if "player" not in host.backends.names():
        host.backends.add(Registration(spec, "t", "t"))
    given = {"model": "player/any", "style": style, "profile": profile, "memory": "none", "window": 0, **options}
    plan = RunPlan(game, tuple(SeatPlan(seat, "llm", given) for seat in GAMES[game]), steps=12, seed=3)
    monkeypatch.setattr(agent, "offerable", lambda space: player.spaces.append(space) or offerable(space))
    models = ModelPool(host)
    with (
        open_store(str(folder / "runs.db")) as store,
        start(plan, host, store, services=Services(models=models)) as run,
    ):

        async def to_the_end() -> None:
            async with models:
                await run.play()

        asyncio.run(to_the_end())
    return player


@pytest.mark.parametrize("profile", ["full", "brief"])
@pytest.mark.parametrize("style", list(ABILITIES))
@pytest.mark.parametrize("game", list(GAMES))
def test_what_the_prompt_names_is_what_the_reply_is_bound_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, game: str, style: str, profile: str
) -> None:
    host = PluginHost.discovered()
    if game not in host.games.names():
        pytest.skip(f"{game} is not installed")
    player = play(monkeypatch, host, tmp_path, game, style, profile, tools="calculator,notes")

    assert player.decided >= 2
    assert not player.problems, player.problems[0]
    steps = read_run(database=str(tmp_path / "runs.db"), host=host).steps
    refused = [f"{step.action}: {step.result.message}" for step in steps if NOT_DECLARED.search(step.result.message)]
    assert not refused, refused[0]
