"""The screen: it fits at every size, shows what it should, and interprets nothing that others wrote."""

from __future__ import annotations

import io
import re
import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from wsap_core import (
    Achievement,
    Action,
    ActionResult,
    AgentMessage,
    Avatar,
    ChatBlock,
    ChatLine,
    Effect,
    EmbodiedObservation,
    GridMapBlock,
    ImageBlock,
    Location,
    Observation,
    PlaceGraphBlock,
    TableBlock,
    TextBlock,
    View,
)
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.terminal.blocks import pixel_rows
from wsap_nexus.terminal.gridmap import GridMap
from wsap_nexus.terminal.panels import achievements, bar, number
from wsap_nexus.terminal.screen import SMALLEST, Look, compose, too_small
from wsap_nexus.terminal.story import Note, SeatScene, SeatStory, Stage, folded, note_of

MAP = GridMapBlock(("T..", ".@C", "~~#"), {"T": "tree", ".": "grass", "@": "you", "C": "cow", "~": "water", "#": "ore"})
AVATAR = Avatar("a-1", "island", health=4, max_health=10)


def drawn(renderable: RenderableType, width: int, height: int, *, colours: bool = False) -> str:
    """What a terminal of that size is sent; plain text unless colours are wanted."""
    out = io.StringIO()
    system = "truecolor" if colours else None
    console = Console(
        file=out, width=width, height=height, force_terminal=colours, color_system=system,  # type: ignore[arg-type]  # a literal
        legacy_windows=False, _environ={},
    )  # fmt: skip
    console.print(renderable, height=height)
    return out.getvalue()


def a_note(number: int, action: str = "wait", **more: object) -> Note:
    note = Note("seat-1", 0, number, action, "", True, "", 0.0, (), False)
    return replace(note, **more)  # type: ignore[arg-type]  # fields of a note


def a_stage(observation: Observation | None = None, **more: object) -> Stage:
    scene = SeatScene("seat-1", "random", observation, notes=(a_note(1), a_note(2, "look")), steps=2)
    return replace(Stage("Island", "20261120-island-7f3a", 7, 100, (scene,)), **more)  # type: ignore[arg-type]


def on_an_island(**more: object) -> EmbodiedObservation:
    class Seen(EmbodiedObservation):
        def to_view(self) -> View:
            return View((MAP,))

    base = Seen(
        {"health": 4, "food": 9}, {"wood": 3}, Location(description="On the beach"), avatar=AVATAR, facing="east"
    )
    return replace(base, **more)  # type: ignore[arg-type]


# --- size ---------------------------------------------------------------------------------

words = st.text(max_size=30)
views = st.lists(
    st.one_of(
        st.builds(TextBlock, words, words),
        st.builds(TableBlock, st.lists(words, max_size=3), st.lists(st.lists(words, max_size=4), max_size=4), words),
        st.builds(ChatBlock, st.lists(st.builds(ChatLine, words, words, words), max_size=3)),
        st.builds(GridMapBlock, st.lists(words, max_size=5), st.dictionaries(st.characters(), words, max_size=4)),
        st.builds(PlaceGraphBlock, st.lists(words, max_size=3), st.lists(st.lists(words, max_size=2), max_size=3)),
        st.builds(ImageBlock, st.just("bm90IGEgcG5n"), st.integers(0, 9), st.integers(0, 9), words),
    ),
    max_size=3,
)
observations = st.builds(
    Observation,
    st.dictionaries(
        words, st.one_of(words, st.integers(-5, 99), st.floats(allow_nan=False), st.booleans()), max_size=9
    ),
    st.dictionaries(words, st.integers(0, 99), max_size=9),
    st.builds(Location, description=words),
    active_effects=st.lists(st.builds(Effect, words), max_size=2),
    time_of_day=st.none() | words,
    messages=st.lists(st.builds(AgentMessage, words, words), max_size=3),
)
notes = st.lists(
    st.builds(
        note_of, st.just("seat-1"), st.integers(0, 2), st.integers(1, 999),
        st.builds(Action, words, st.dictionaries(words, words, max_size=2), st.none() | words),
        st.builds(ActionResult, st.booleans(), words, st.sampled_from((0.0, 1.0, -0.1)), st.lists(words, max_size=2)),
    ),
    max_size=12,
)  # fmt: skip


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    seats = []
    for _ in range(draw(st.integers(1, 3))):
        view = View(draw(views)) if draw(st.booleans()) else None
        unlocked = draw(st.dictionaries(words, st.integers(1, 99), max_size=5))
        seats.append(
            SeatScene(draw(words), draw(words), draw(observations), view, 5, 0, 1.5, tuple(draw(notes)), unlocked)
        )
    catalogue = tuple(draw(st.lists(st.builds(Achievement, words), max_size=30)))
    return Stage(draw(words), draw(st.none() | words), 1, None, tuple(seats), draw(st.integers(0, 9)), catalogue,
                 ((draw(words), 1.0, draw(words)),), draw(words), draw(words))  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(stages(), st.integers(SMALLEST[0], 160), st.integers(SMALLEST[1], 60), st.booleans(), st.booleans())
@pytest.mark.slow
def test_whatever_is_shown_fills_the_screen_and_no_more(
    stage: Stage, width: int, height: int, frame: bool, asked: bool
) -> None:
    look = Look(frame=frame, plain=True)
    if asked:
        look = replace(look, prompt=lambda width: [Text("Which way?"[:width])])
    text = drawn(compose(stage, width, height, look), width, height)
    lines = text.removesuffix("\n").split("\n")
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_a_terminal_that_is_too_small_is_told_so() -> None:
    text = drawn(compose(a_stage(), 50, 12, Look()), 50, 12)
    assert " ".join(text.split()).startswith(too_small(50, 12))
    assert "50x12" in text
    assert f"{SMALLEST[0]}x{SMALLEST[1]}" in text


# --- what others wrote --------------------------------------------------------------------


def test_markup_and_escapes_in_a_game_s_words_are_shown_and_do_nothing() -> None:
    evil = "[bold red]loud[/] \x1b[2J\x1b]0;title\x07 \u202eback"
    seen = on_an_island(
        status={evil: evil}, inventory={evil: 1}, location=Location(description=evil), time_of_day=evil,
        messages=[AgentMessage(evil, evil)], active_effects=[Effect(evil)],
    )  # fmt: skip
    note = note_of("seat-1", 0, 1, Action(evil, {evil: evil}, evil), ActionResult(True, evil, 1.0, [evil]))
    scene = SeatScene(evil, evil, seen, notes=(note,), unlocked={"x": 1})
    stage = Stage(evil, evil, 1, None, (scene, scene), 0, (Achievement(evil),), ((evil, 1.0, evil),))
    text = drawn(compose(stage, 120, 40, Look()), 120, 40)
    assert "[bold red]loud[/]" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


# --- parts --------------------------------------------------------------------------------


def test_the_screen_names_the_game_the_player_the_run_and_the_figures() -> None:
    stage = a_stage(on_an_island(time_of_day="dusk"), scores=(("score", 24.25, "%"),), state="paused", keys="q stop")
    text = drawn(compose(stage, 100, 30, Look(plain=True)), 100, 30)
    for part in ("Island", "random", "seed 7", "20261120-island-7f3a", "paused", "step 2/100", "score 24.25%", "dusk",
                 "On the beach", "wood 3", "health", "look", "q stop"):  # fmt: skip
        assert part in text, part


def test_a_map_is_drawn_as_large_as_its_place_allows() -> None:
    chart = GridMap(MAP)
    assert [chart.scale(*size) for size in ((3, 3), (6, 3), (11, 9), (12, 6), (200, 200))] == [0, 1, 1, 2, 4]
    assert chart.size(0) == (3, 3)
    assert chart.size(2) == (12, 6)
    lines = drawn(GridMap(MAP, plain=True), 3, 3).splitlines()
    assert lines == ["T..", ".@C", "~~#"]
    assert drawn(GridMap(MAP, plain=True), 6, 3).splitlines()[1].split() == [".", "@", "C"]


def test_one_s_own_body_shows_where_it_looks() -> None:
    for facing, sign in (("north", "▲"), ("east", "▶"), ("south", "▼"), ("west", "◀"), ("", "@")):
        assert drawn(GridMap(MAP, facing=facing, plain=True), 3, 3).splitlines()[1][1] == sign


def test_a_creature_stands_on_the_ground_around_it() -> None:
    on_grass = drawn(GridMap(GridMapBlock(("...", ".C.", "..."), MAP.legend)), 3, 3, colours=True)
    grounds = set(re.findall(r"48;2;\d+;\d+;\d+", on_grass))
    assert len(grounds) == 1, "the cow's tile has the colour of grass"


def test_the_night_is_darker_than_the_day() -> None:
    def brightness(time: str) -> int:
        text = drawn(compose(a_stage(on_an_island(time_of_day=time)), 80, 24, Look()), 80, 24, colours=True)
        return sum(int(n) for ground in re.findall(r"48;2;(\d+);(\d+);(\d+)", text) for n in ground)

    assert brightness("night") < brightness("dusk") < brightness("day")


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar("health", 5, 10, 33).plain == "health " + "█" * 11 + "░" * 11 + "   5"
    assert "░" not in bar("health", 10, 10, 30).plain
    assert "█" not in bar("health", 0, 10, 30).plain
    assert bar("health", 50, 10, 30).plain.count("█") == bar("health", 10, 10, 30).plain.count("█")


@pytest.mark.parametrize(("value", "shown"), [(3.0, "3"), (0.5, "0.5"), (12.25, "12.25"), (100, "100"), (-0.1, "-0.1")])
def test_numbers_are_written_as_a_person_would(value: float, shown: str) -> None:
    assert number(value) == shown


@given(st.integers(0, 22), st.integers(30, 100), st.integers(1, 25))
def test_every_achievement_is_named_or_counted(done: int, width: int, height: int) -> None:
    names = [f"deed_{i:02d}" for i in range(22)]
    scene = SeatScene("a", "b", unlocked={name: i + 1 for i, name in enumerate(names[:done])})
    lines = achievements(scene, tuple(Achievement(name) for name in names), width, height)
    text = " ".join(line.plain for line in lines)
    assert len(lines) <= height
    counted = sum(int(n) for n in re.findall(r"(\d+) (?:earlier|to go)", text))
    assert len(re.findall(r"deed_\d\d", text)) + counted == 22
    if done and height > 1:
        assert names[done - 1] in text, "the newest is always named"


@given(notes)
@pytest.mark.slow
def test_equal_steps_share_a_line_and_none_is_lost(taken: list[Note]) -> None:
    lines = folded(taken)
    assert sum(count for _, count in lines) == len(taken)
    assert sum(note.reward for note, _ in lines) == pytest.approx(sum(note.reward for note in taken))


def test_a_story_counts_reward_over_episodes_and_achievements_within_one() -> None:
    story = SeatStory(SeatTally("seat-1", "random"))
    story.take(a_note(1, reward=1.0, achievements=("dig",)), Observation({"food": 9}))
    story.take(a_note(2, reward=0.5, done=True), Observation({"food": 3}))
    story.take(a_note(3, episode=1, reward=2.0, achievements=("dig",)))
    scene = story.scene()
    assert (scene.reward, scene.steps, scene.episode) == (3.5, 3, 1)
    assert scene.unlocked == {"dig": 3}
    assert scene.maxima == {"food": 9.0}


# --- pictures -----------------------------------------------------------------------------


def png(pixels: list[list[tuple[int, int, int]]]) -> bytes:
    """A PNG file, written by hand."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    raw = b"".join(b"\x00" + bytes(v for pixel in row for v in pixel) for row in pixels)
    head = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


RED, BLUE = (255, 0, 0), (0, 0, 255)


def test_a_picture_becomes_pixels_two_to_a_cell() -> None:
    pytest.importorskip("PIL")
    block = ImageBlock.from_png(png([[RED, BLUE], [BLUE, RED]]), width=2, height=2)
    assert pixel_rows(block, 2, 2) == [[RED, BLUE], [BLUE, RED]]
    assert pixel_rows(block, 4, 5) == [[RED, RED, BLUE, BLUE]] * 2 + [[BLUE, BLUE, RED, RED]] * 2


@pytest.mark.parametrize("data", [b"", b"not a picture", png([[RED]])[:30], b"GIF89a" + bytes(20)])
def test_what_is_no_picture_is_not_drawn(data: bytes) -> None:
    assert pixel_rows(ImageBlock.from_png(data, width=1, height=1), 10, 10) is None
