"""What several test files share: any message of the protocol, and an environment of one's own for `wsap`."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from wsap_core import protocol as m
from wsap_nexus.schemas import MESSAGES

# What survives JSON as it is: no lone surrogates, no NaN, numbers that a double holds exactly.
TEXTS = st.sampled_from(
    [
        "",
        "a",
        "$type",
        "extras",
        "kind",
        "two words",
        'quote"d',
        "back\\slash",
        "\x00\x1b[2J",
        "\u2028\u202e",
        "Ünïcödé",
        "\U0001f600",
    ]
)
WHOLES = st.sampled_from([0, 1, -1, 7, 2**31, -(2**53) + 1, 2**53 - 1])
REALS = st.sampled_from([0.0, -1.0, 1, 0.1, -2.5, 1e-300, 1e300, 2.0**53, 123456.789])
LEAVES = st.sampled_from(
    [None, True, False, 0, -3, 0.5, 1e300, "", "text", "\x1b", [], {}, [1, [2.5, None]], {"b": {"a": [True]}}]
)
OBJECTS = st.dictionaries(TEXTS, LEAVES, max_size=2)
COUNTS = st.dictionaries(TEXTS, WHOLES, max_size=2)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A short list."""
    return st.lists(strategy, max_size=2)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """That, or None."""
    return st.none() | strategy


def every_message() -> dict[str, st.SearchStrategy[Any]]:
    """For each message of the protocol, any instance of it, with every field given."""
    b = st.builds
    location = b(m.Location, some(REALS), maybe(TEXTS), TEXTS)
    entity = b(m.Entity, TEXTS, maybe(TEXTS), REALS, TEXTS, maybe(TEXTS), st.booleans(), TEXTS)
    terrain = b(m.Terrain, TEXTS, TEXTS, st.booleans(), maybe(REALS))
    event = b(m.Event, TEXTS, TEXTS, maybe(TEXTS), maybe(WHOLES))
    effect = b(m.Effect, TEXTS, TEXTS, maybe(REALS))
    goal = b(m.Goal, TEXTS, TEXTS, TEXTS, maybe(TEXTS), some(TEXTS))
    achievement = b(m.Achievement, TEXTS, TEXTS, maybe(TEXTS))
    words = st.dictionaries(TEXTS, TEXTS, max_size=3)
    plainly = b(m.ActionAvailability, TEXTS, st.booleans(), TEXTS)
    possible = b(
        m.Possible, TEXTS, st.booleans(), TEXTS, choices=st.dictionaries(TEXTS, st.lists(TEXTS, max_size=2), max_size=2)
    )
    availability = plainly | possible
    message = b(m.AgentMessage, TEXTS, TEXTS, TEXTS, maybe(TEXTS), maybe(WHOLES))
    perceived: tuple[Any, ...] = (
        *(OBJECTS, COUNTS, location, some(entity), some(terrain)),
        *(some(effect), some(goal), some(event), WHOLES, maybe(TEXTS)),
    )
    now = {"available_actions": maybe(some(availability)), "messages": some(message)}
    plain = b(m.Observation, *perceived, **now)
    state = st.sampled_from(m.AvatarState)
    avatar = b(
        m.Avatar, TEXTS, TEXTS, maybe(TEXTS), state, TEXTS, some(REALS), OBJECTS, REALS, REALS, COUNTS,
        st.dictionaries(TEXTS, TEXTS, max_size=3), TEXTS, TEXTS, WHOLES, WHOLES, maybe(some(REALS)),
    )  # fmt: skip
    embodied = b(
        m.EmbodiedObservation, *perceived, **now, avatar=avatar, facing=TEXTS, stance=TEXTS, velocity=some(REALS),
        vision_range=maybe(REALS), vision_cone=REALS, hearing_range=maybe(REALS),
    )  # fmt: skip
    observation = plain | embodied
    parameter = b(m.ParamDef, TEXTS, TEXTS, st.booleans(), maybe(OBJECTS), TEXTS)
    definition = b(m.ActionDef, TEXTS, TEXTS, some(parameter), some(TEXTS), TEXTS)
    action = b(m.Action, TEXTS, OBJECTS, maybe(TEXTS))
    result = b(m.ActionResult, st.booleans(), TEXTS, REALS, some(TEXTS), st.booleans(), observation)
    option = b(m.RespawnOption, TEXTS, TEXTS, some(REALS) | TEXTS, maybe(OBJECTS), some(TEXTS), TEXTS)
    entry = b(m.HistoryEntry, observation, action, maybe(result), maybe(TEXTS), maybe(WHOLES))
    line = b(m.ChatLine, TEXTS, TEXTS, TEXTS)
    image = b(m.ImageBlock.from_png, st.binary(max_size=8), width=WHOLES, height=WHOLES, alt=TEXTS)
    grid = b(m.GridMapBlock, some(TEXTS), st.dictionaries(TEXTS, TEXTS, max_size=3), TEXTS)
    places = b(
        m.PlaceGraphBlock, some(TEXTS), some(st.tuples(TEXTS, TEXTS)), maybe(TEXTS),
        st.dictionaries(TEXTS, st.lists(TEXTS, max_size=2).map(tuple), max_size=2),
        st.dictionaries(TEXTS, st.tuples(REALS, REALS), max_size=2), words, words,
    )  # fmt: skip
    seat = b(m.SeatState, TEXTS, TEXTS, st.sampled_from(["in", "out", "away"]), st.booleans(), TEXTS, TEXTS)
    seats = b(
        m.SeatsBlock, some(seat), some(st.tuples(TEXTS, TEXTS, TEXTS)), TEXTS, some(TEXTS), TEXTS, st.booleans(), TEXTS,
    )  # fmt: skip
    chat = b(m.ChatBlock, some(line), TEXTS)
    table = b(m.TableBlock, some(TEXTS), some(st.lists(TEXTS, max_size=2).map(tuple)), TEXTS)
    text = b(m.TextBlock, TEXTS, TEXTS)
    happened = b(m.TimelineEntry, TEXTS, maybe(WHOLES), TEXTS, TEXTS, some(TEXTS), some(TEXTS))
    timeline = b(m.TimelineBlock, some(happened), TEXTS)
    selection = b(m.Selection, TEXTS, TEXTS, some(TEXTS), WHOLES, TEXTS)
    bonus = b(m.Bonus, TEXTS, TEXTS, REALS)
    item = b(m.PortableItem, TEXTS, TEXTS, TEXTS, WHOLES, OBJECTS, TEXTS, words)
    levels = st.dictionaries(TEXTS, REALS, max_size=3)
    found = {
        "Bonus": bonus, "Entry": b(m.Entry, TEXTS, TEXTS, levels, some(item), WHOLES, TEXTS), "PortableItem": item,
        "Receipt": b(m.Receipt, TEXTS, OBJECTS, some(TEXTS), words, some(TEXTS)),
        "TransferRule": b(m.TransferRule, TEXTS, TEXTS, REALS, bonus, TEXTS),
        "TransitPackage": b(m.TransitPackage, TEXTS, some(item), words),
        "Achievement": achievement, "Action": action, "ActionAvailability": availability, "ActionDef": definition,
        "ActionResult": result, "ActionSpace": b(m.ActionSpace, some(definition)), "AgentMessage": message,
        "Avatar": avatar, "AvatarRoster": b(m.AvatarRoster, TEXTS, TEXTS, some(avatar), maybe(TEXTS), WHOLES),
        "AvatarSpec": b(m.AvatarSpec, maybe(TEXTS), maybe(OBJECTS), TEXTS, TEXTS),
        "ChatBlock": chat, "ChatLine": line,
        "DeathEvent": b(m.DeathEvent, TEXTS, TEXTS, maybe(TEXTS), some(REALS), TEXTS, COUNTS, REALS, some(option)),
        "Effect": effect, "EmbodiedObservation": embodied, "Entity": entity, "Event": event, "Goal": goal,
        "GridMapBlock": grid, "HistoryEntry": entry, "ImageBlock": image,
        "JackInResult": b(m.JackInResult, st.booleans(), maybe(avatar), TEXTS, OBJECTS, maybe(observation)),
        "JackOutResult": b(m.JackOutResult, st.booleans(), state, TEXTS, OBJECTS),
        "Location": location, "Memory": b(m.Memory, some(TEXTS), some(TEXTS), some(entry)),
        "Observation": observation, "ParamDef": parameter, "PlaceGraphBlock": places, "Possible": possible,
        "RespawnOption": option, "SeatState": seat, "SeatsBlock": seats, "Selection": selection,
        "TableBlock": table, "Terrain": terrain, "TextBlock": text, "TimelineBlock": timeline,
        "TimelineEntry": happened,
        "Tick": b(m.Tick, WHOLES, OBJECTS, TEXTS, st.booleans()),
        "Tool": b(m.Tool, TEXTS, TEXTS, some(parameter)),
        "View": b(m.View, some(image | grid | places | seats | chat | table | text | timeline), TEXTS, some(selection)),
    }  # fmt: skip
    assert found.keys() == MESSAGES.keys()
    return found


@pytest.fixture(scope="session")
def messages() -> Mapping[str, st.SearchStrategy[Any]]:
    """Any instance of each message, by the message's name."""
    return every_message()


@pytest.fixture
def own_environment(tmp_path: Path) -> dict[str, str]:
    """The variables for a `wsap` that keeps its files in this test's folder, at a known width and language.

    The folder `site` in it is on Python's path; nothing needs to be there.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WSAP_")}
    own = {"WSAP_HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path / "site")}
    return {**kept, **own, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"}


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    """A function that puts a distribution with one plugin into the folder `site`, as pip would."""

    def install(name: str, code: str, *, plugin: str = "", version: str = "1.0") -> Path:
        site = tmp_path / "site"
        module = name.replace("-", "_").replace(".", "_").lower()
        information = site / f"{module}-{version}.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (information / "entry_points.txt").write_text(f"[wsap]\n{plugin or module} = {module}\n")
        path = site / f"{module}.py"
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        return path

    return install
