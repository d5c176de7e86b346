"""Every installed game is played by default within the 4,096 tokens of context that Ollama gives a model by default."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from told_and_bound import Player

from wsap_core import PluginHost
from wsap_core.host import Registration
from wsap_core.seams.model import Abilities, Reply, Request
from wsap_core.seams.services import Services
from wsap_core.specs import BackendSpec
from wsap_llm.backends.pool import ModelPool
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.text.tokens import estimate_request
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store

CONTEXT = 4096
GAMES: dict[str, tuple[str, ...]] = {
    "crafter": ("seat-1",), "minigrid": ("seat-1",), "echo": ("seat-1",), "morrowind": ("seat-1",),
    "matrix": ("row", "column"), "matrix-turns": ("row", "column"), "matrix-free": ("row", "column"),
    "village": ("anna",), "lighthouse": ("martin",), "tossim": tuple(f"player-{n}" for n in range(1, 6)),
}  # fmt: skip
"""Game -> the seats that a model plays."""
OPTIONS = {"tossim": {"mode": "five", "rules": "quick"}}


class Narrow(ScriptedBackend):
    """Replies at random within its constraint, with a context of `CONTEXT` tokens, and keeps the sizes of requests."""

    def __init__(self) -> None:
        super().__init__(self._reply, abilities=Abilities(json_schema=True, context=CONTEXT))
        self._player = Player("json", seed=1)
        self.sizes: list[int] = []

    def _reply(self, request: Request) -> Reply:
        self.sizes.append(estimate_request(request) + (request.sampling.max_tokens or 0))
        assert request.constraint is not None
        return self._player._chosen(request.constraint, {})


@pytest.mark.parametrize("game", list(GAMES))
def test_a_game_is_played_within_the_default_context(tmp_path: Path, game: str) -> None:
    host = PluginHost.discovered()
    if game not in host.games.names():
        pytest.skip(f"{game} is not installed")
    narrow, models = Narrow(), ModelPool(host)
    host.backends.add(Registration(BackendSpec("narrow", "", lambda context: narrow), "t", "t"))
    seats = tuple(SeatPlan(seat, "llm", {"model": "narrow/any"}) for seat in GAMES[game])
    plan = RunPlan(game, seats, steps=12, seed=3, options=OPTIONS.get(game, {}))
    with (
        open_store(str(tmp_path / "runs.db")) as store,
        start(plan, host, store, services=Services(models=models)) as run,
    ):

        async def to_the_end() -> None:
            async with models:
                await run.play()

        asyncio.run(to_the_end())
    assert narrow.sizes
    assert max(narrow.sizes) <= CONTEXT
