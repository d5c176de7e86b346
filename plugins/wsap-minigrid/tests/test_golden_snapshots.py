"""Snapshots that were kept restore, and play goes on the same."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from wsap_core import Action, Context
from wsap_core.protocol import Entry, PortableItem
from wsap_core.protocol.wire import dumps
from wsap_minigrid.adapter import MiniGridAdapter

GOLDEN = json.loads(Path(__file__).with_name("golden").joinpath("snapshots.json").read_text("ascii"))


def life(world: MiniGridAdapter) -> list[Any]:
    """Return what the world answers to a life with every kind of request, beginning with what is seen."""
    answers: list[Any] = [world.observe()]
    chooser = random.Random(7)
    body = world.observe().avatar.avatar_id

    def play(steps: int) -> None:
        for _ in range(steps):
            possible = [a.name for a in world.observe().available_actions or () if a.available] or ["forward"]
            answers.append(world.act(Action(chooser.choice(possible))))

    world.jack_in("ann", body)
    play(60)
    world.respawn(body, "anew")
    tool = PortableItem("late", "late", "tool", 9)
    answers.append(world.admit(body, Entry("in-1", "ann", {}, [tool], 30)))
    answers.append(world.admit(body, Entry("in-2", "ann", {"exploration": 1.0}, [tool], 30)))
    world.jack_in("ann", body)
    play(60)
    return [*answers, world.release(body, "out-3"), world.observe()]


@pytest.mark.parametrize("name", ["bound", "dormant"])
def test_a_kept_snapshot_restores_and_goes_on_the_same(name: str) -> None:
    world = MiniGridAdapter(Context(seed=1, config={"pack": True}))
    world.restore(base64.b64decode(GOLDEN[name]["snapshot"]))
    text = "\n".join(dumps(answer) for answer in life(world))
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN[name]["sha256"]
