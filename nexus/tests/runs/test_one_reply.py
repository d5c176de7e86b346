"""A model that gives one reply for ever comes to an end in every game, after a bounded number of calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from wsap_core.host import PluginHost
from wsap_core.references import load_adapter_spec
from wsap_core.seams.model_errors import ForcedDecisionsError
from wsap_core.seams.services import Services
from wsap_nexus.runs.plan import RunPlan, plan_seats
from wsap_nexus.runs.record.tally import MOST_FORCED
from wsap_nexus.runs.session import unrecorded

GAMES = ("crafter", "minigrid", "matrix", "matrix-turns", "matrix-free", "tossim", "echo", "orchard")
ORCHARD = Path(__file__).parents[3] / "tests" / "orchard.py"
SEATS = 15
"""Most seats of any of them."""
CALLS = 12
"""Most calls of a seat for each time that it moves the game on: two replies, their lookups, what takes no turn."""


def reply(action: str, **params: Any) -> dict[str, Any]:
    return {"action": action, "params": params, "reasoning": ""}


UNREADABLE = "I think that I should wait and see."
NOTHING_IN_THEM = (
    *(reply("jack_out"), reply("emote", emote="wave"), reply("inspect_self"), reply("look", target="east")),
    *(reply("say", text="hi"), ""),
)
"""What moves no game on."""
MOVES = (reply("noop"), reply("turn_left"), reply("cooperate"), reply("wait"), reply("speak", text="hello"))
"""Actions that do."""


def play(game: str, said: Any) -> tuple[dict[str, Any], ForcedDecisionsError | None]:
    host = PluginHost.discovered()
    where = f"{ORCHARD}:Orchard" if game == "orchard" else game
    seats = plan_seats(
        load_adapter_spec(where, host), agent="llm", options={"model": "scripted/x", "model.reply": said}
    )
    session = unrecorded(RunPlan(where, seats, seed=3), host, services=Services(progress=lambda text: None))
    try:
        return asyncio.run(session.play()).to_json(), None
    except ForcedDecisionsError as error:
        return session.run.summary().to_json(), error


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    "said", [UNREADABLE, *(pytest.param(said, marks=pytest.mark.slow) for said in NOTHING_IN_THEM)], ids=str
)
def test_a_reply_that_moves_no_game_on_ends_it_or_pauses_it(game: str, said: Any) -> None:
    summary, error = play(game, said)
    assert summary["usage"]["calls"] <= SEATS * MOST_FORCED * CALLS
    if error is not None:
        assert "forced" in str(error)
        assert summary["decisions"]["forced"] >= MOST_FORCED
    assert summary["done"] or error is not None


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("said", MOVES, ids=str)
def test_an_action_for_ever_ends_each_game(game: str, said: Any) -> None:
    summary, error = play(game, said)
    assert summary["done"] or error is not None
    assert summary["usage"]["calls"] <= (summary["steps"] + SEATS) * CALLS
    assert summary["steps"] <= 10_000
