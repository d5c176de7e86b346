"""What a game's spec says reaches those who play it, wherever its worlds run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from life_kit import Place, Script, host_with, nexus_at
from warm import begin_python

from wsap_core.seams.model import Request
from wsap_nexus.store.entities import EntryRequest, Policy

GAME = """
from dataclasses import replace
from wsap_core.references import load_adapter_spec
from wsap_nexus.worlds.remote.serve_world import serve_world
serve_world(replace(load_adapter_spec("matrix"), name="far-matrix"), port=0)
"""
MODEL = {"*": Policy("llm", {"model": "script/it", "plan": "no"})}


@contextmanager
def matrix_elsewhere() -> Iterator[str]:
    process = begin_python(GAME)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


def prompts(path: Path, game: str, *, url: str | None = None, workers: int = 0) -> list[str]:
    """Have two models play three rounds of the matrix game, and return what `column` was asked, as the model reads it.

    Args:
        path: the folder of the nexus.
        game: the game's name.
        url: the address of its process, if it has one of its own.
        workers: the number of workers of the nexus.
    """

    def decide(request: Request) -> str:
        mine = "defect" if asked_column(request) else "cooperate"
        return f'{{"action": "{mine}", "params": {{}}}}'

    def asked_column(request: Request) -> bool:
        return "You are column." in request.messages[0].text()

    script = Script({"decide": decide})

    async def play() -> None:
        agents = {"row": MODEL, "column": MODEL}
        host = host_with(script=script)
        async with nexus_at(path, agents, host=host, games=("matrix",), workers=workers, start=False) as place:
            if url is not None:
                await place.nexus.remote_games.join(url, None, frozenset(host.games.names()))
            spec = place.nexus.catalog.spec
            assert spec(game).score_metrics == spec("matrix").score_metrics  # with the bounds of its payoffs
            await entered(place)
            await place.nexus.stop()

    async def entered(place: Place) -> None:
        await asyncio.gather(*(place.nexus.enter(agent, game, EntryRequest(steps=3)) for agent in ("row", "column")))
        await place.until_events("left", 2)

    path.mkdir()
    asyncio.run(play())
    asked = [request for request in script.requests if request.purpose == "decide" and asked_column(request)]
    texts = ["\n\n".join(f"[{m.role}]\n{m.text()}" for m in request.messages) for request in asked]
    return [text.replace("|far-matrix", "") for text in texts]  # one game more to go to


def without_order(texts: list[str]) -> list[list[str]]:
    """Return the sorted lines of texts: an observation from another process has its stats in the order of names."""
    return [sorted(text.splitlines()) for text in texts]


@pytest.mark.slow
def test_matrix_prompts_its_players_with_its_own_objective_wherever_it_runs(tmp_path: Path) -> None:
    here = prompts(tmp_path / "here", "matrix")
    in_worker = prompts(tmp_path / "worker", "matrix", workers=1)
    with matrix_elsewhere() as url:
        elsewhere = prompts(tmp_path / "elsewhere", "far-matrix", url=url)
    assert len(here) == 3
    assert elsewhere == in_worker
    assert without_order(elsewhere) == without_order(here)
    for text in (*here, *in_worker, *elsewhere):
        assert "Your goal is to collect as much as you can. Respond with a JSON action." in text
    systems = {text.partition("[user]")[0] for text in (*here, *in_worker, *elsewhere)}
    assert len(systems) == 1
