"""A small world, and game masters of the tests."""

from __future__ import annotations

import pytest

from wsap_sandbox.model import Character, Place, World, WorldObject


@pytest.fixture
def mill() -> World:
    """Three people, three places in a row, two objects; Anna and Boris are at the mill."""
    return World(
        title="The mill",
        language="en",
        premise="Flour is short, and the winter is long.",
        places=(
            Place("mill", "the mill", "A mill with one wheel.", "Rain.", ("yard",), ("sack",)),
            Place("yard", "the yard", "A yard of beaten earth.", "", ("mill", "road")),
            Place("road", "the road", "A road that leads out.", "", ("yard",)),
        ),
        characters=(
            Character(
                "anna",
                "Anna",
                "A tall woman in a grey coat.",
                "Proud and quick, she has never forgiven her brother.",
                "mill",
                ("When somebody lies to me, I leave.", "I always share bread."),
                "I hid the key under the third stone.",
                "Uneasy because the ledger does not add up.",
                "To find out who takes the flour at night.",
                ("key",),
            ),
            Character(
                "boris",
                "Boris",
                "A broad man with floury hands.",
                "A coward who wants to be loved by everybody.",
                "mill",
                ("In danger, I hide first.",),
                "I sold nine sacks to the garrison.",
                "Afraid that somebody has counted the sacks.",
                "To keep Anna away from the cellar door.",
            ),
            Character("vera", "Vera", "A girl with a dog.", "Curious, and never afraid of anything at all.", "road"),
        ),
        objects=(WorldObject("sack", "a sack of flour"), WorldObject("key", "a small key")),
        cells=2,
        seed=7,
    )
