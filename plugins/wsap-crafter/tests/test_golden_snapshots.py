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
from wsap_core.authoring.packing import unpack
from wsap_core.protocol import AvatarSpec, Entry, PortableItem
from wsap_core.protocol.wire import dumps
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.rules import GAME_ACTIONS
from wsap_crafter.snapshot import MAGIC

GOLDEN = json.loads(Path(__file__).with_name("golden").joinpath("snapshots.json").read_text("ascii"))


def life(world: CrafterAdapter) -> list[Any]:
    """Return the world's results for every kind of request, starting with its snapshot."""
    answers: list[Any] = [unpack(MAGIC, world.snapshot(), "crafter"), world.observe()]
    chooser = random.Random(7)

    def play(steps: int) -> None:
        answers.extend(world.act(Action(chooser.choice(GAME_ACTIONS))) for _ in range(steps))

    play(120)
    if not world.list_avatars("ann"):
        world.create_avatar("ann", AvatarSpec(name="Ann"))
    elif world.respawn("avatar-1", "new_world").success:
        answers.append(world.release("avatar-1", "out-2"))
    answers.append(world.admit("avatar-1", Entry("in-1", "ann", {}, [PortableItem("late", "late", "tool", 9)], 30)))
    answers.append(
        world.admit("avatar-1", Entry("in-2", "ann", {"combat": 1.0}, [PortableItem("x", "x", "tool", 9)], 30))
    )
    world.jack_in("ann", "avatar-1")
    play(60)
    left = world.jack_out("ann", "dormant", force=True)
    answers += [left.success, left.avatar_state, left.session_stats, world.release("avatar-1", "out-3")]
    return [*answers, world.observe(), unpack(MAGIC, world.snapshot(), "crafter")]


@pytest.mark.parametrize("name", ["fresh", "bound", "dormant", "dead"])
def test_a_kept_snapshot_restores_and_goes_on_the_same(name: str) -> None:
    world = CrafterAdapter(Context(seed=1))
    world.restore(base64.b64decode(GOLDEN[name]["snapshot"]))
    text = "\n".join(dumps(answer) for answer in life(world))
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN[name]["sha256"]
