"""An error of a game or an agent says where in the author's file it was raised."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from wsap_core import Observation
from wsap_core.errors import WorldError
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_core.seams.tool import ToolContext
from wsap_core.worlds import World

GAME = """\
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation


class Game:
    game_description = "x"
    action_space = ActionSpace([ActionDef("go", "Go")])
    blocking = BLOCKING

    def reset(self):
        return Observation()

    def observe(self):
        return Observation()

    def act(self, action):
        return self.helper([])

    def helper(self, cells):
        return max(cells)
"""


@pytest.mark.parametrize("blocking", [False, True])
def test_an_exception_of_a_game_is_told_with_its_file_and_line(tmp_path: Path, blocking: bool) -> None:
    from dataclasses import replace

    from wsap_core import Action

    (tmp_path / "game.py").write_text(GAME.replace("BLOCKING", str(blocking)), encoding="utf-8")
    spec = replace(load_adapter_spec(f"{tmp_path / 'game.py'}:Game"), blocking=blocking)

    async def played() -> None:
        world = World.create(spec, Context.create(0))
        seat = world.open_seat("seat-1")
        await world.reset()
        await seat.step(Action("go"))

    with pytest.raises(WorldError, match=r"raised ValueError: .* at game\.py:19$"):
        asyncio.run(played())


def test_nested_status_is_told_in_words() -> None:
    status = {"fireworks": {"red": 0, "blue": 2}, "cards": ["a1", "b2"], "deep": {"x": [1, 2], "on": True}, "none": []}
    told = Observation(status=status).to_text()
    assert "fireworks: red 0, blue 2" in told
    assert "cards: a1, b2" in told
    assert "deep: x (1, 2), on yes" in told
    assert "none: none" in told


def test_the_context_of_a_tool_is_created_as_such() -> None:
    context: ToolContext = ToolContext.create(seed=3)
    assert context.memory is None
