"""A story as it is read back from its run, and what becomes of it: Markdown, a page, a view."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from sandbox_kit import mill
from story_kit import EVIL, Recorded, told

from wsap_core.errors import UsageError
from wsap_core.protocol import PlaceGraphBlock, TextBlock, TimelineBlock
from wsap_sandbox.model import World
from wsap_sandbox.story.chapters import read_chapters
from wsap_sandbox.story.views import html, markdown, run_view


@pytest.fixture
def world() -> World:
    return mill()


@pytest.mark.parametrize("late", [False, True])
def test_narration_finds_its_tick_whenever_it_was_recorded(world: World, late: bool) -> None:
    chapters = list(read_chapters(told(world, 6, late=late)))
    assert [chapter.tick for chapter in chapters] == [1, 2, 3, 4, 5, 6]
    for chapter in chapters:
        texts = [scene.text for scene in chapter.scenes()]
        assert texts == [f"In {place.name} it was the {chapter.tick}th day. " for place in world.places]
    assert chapters == list(read_chapters(told(world, 6)))


def test_a_scene_names_those_who_were_there_when_it_began(world: World) -> None:
    first = next(read_chapters(told(world, 1)))
    assert {scene.place: scene.people for scene in first.scenes()} == {
        "mill": ("anna", "boris"),
        "yard": (),
        "road": ("vera",),
    }
    assert first.where() == {"mill": [], "yard": ["anna", "boris", "vera"], "road": []}


def test_what_a_scene_rests_on_names_events_witnesses_and_prompts(world: World) -> None:
    second = list(read_chapters(told(world, 2)))[1]
    scene = next(scene for scene in second.scenes() if scene.place == "yard")
    rests = second.rests_on(scene)
    assert rests[0] == (
        "2.yard.1 Anna goes on.  (failure; trigger: When somebody lies to me, I leave.; noticed by Anna, Boris, Vera)"
    )
    assert rests[-1] == ("Prompts: 2/intent/anna, 2/intent/boris, 2/intent/vera, 2/scene/yard, 2/story/yard")
    mill_scene = next(scene for scene in second.scenes() if scene.place == "mill")
    assert "Replaced, because the model's reply could not be used: scene, the mill: missing anna" in second.rests_on(
        mill_scene
    )


# --- Markdown -----------------------------------------------------------------------------------------


def test_a_markdown_log_has_a_heading_for_each_tick_and_scene(world: World) -> None:
    lines = "".join(markdown(read_chapters(told(world, 2)))).splitlines()
    assert lines[:6] == ["# The mill", "", "## Tick 1", "", "### the mill · Anna, Boris", ""]
    assert lines[6] == "In the mill it was the 1th day."
    assert "- 1.mill.1 Anna goes on." in "".join(markdown(read_chapters(told(world, 1)), events=True))


def test_russian_logs_are_in_russian(world: World) -> None:
    assert "## Такт 1" in "".join(markdown(read_chapters(told(replace(world, language="ru"), 1))))


@pytest.mark.parametrize("line", ["# no heading", "- no list", "1. no list", "+ no", "=== no", "> no quote"])
def test_text_is_never_markup_of_a_markdown_log(world: World, line: str) -> None:
    out = "".join(markdown(read_chapters(told(world, 1, text=f"{EVIL}\n{line}"))))
    assert not re.search(r"(?<!\\)[<\[*]", out.replace("\\\\", ""))
    assert not any(found.startswith(line[:2]) for found in out.splitlines() if "no" in found)
    assert "\u202e" not in out


# --- the page -----------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """The elements of a page as a browser would find them, and the data in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data = ""
        self._data = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._data = ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        self.data += data if self._data else ""


def test_the_page_holds_the_story_as_data_and_nothing_of_it_as_markup(world: World) -> None:
    tame = Elements("".join(html(read_chapters(told(world, 3)))))
    evil = replace(world, title=EVIL, characters=tuple(replace(one, name=EVIL) for one in world.characters))
    wild = Elements("".join(html(read_chapters(told(evil, 3, text=EVIL)))))
    assert wild.tags == tame.tags
    data = json.loads(wild.data)
    assert data["ticks"][0]["scenes"][0]["text"].endswith(EVIL.replace("\u202e", " "))
    assert len({name for _, name in data["characters"]}) == 3  # told apart, though their names are the same


def test_the_page_asks_for_nothing_and_runs_its_own_script_alone(world: World) -> None:
    page = "".join(html(read_chapters(told(world, 1))))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_a_story_without_ticks_gives_no_page() -> None:
    with pytest.raises(UsageError, match="no ticks yet"):
        list(html(()))


# --- the view -----------------------------------------------------------------------------------------


def blocks(view: Any) -> tuple[PlaceGraphBlock, TimelineBlock]:
    return view.blocks[0], view.blocks[-1]


def test_the_view_shows_the_newest_ticks_and_a_map(world: World) -> None:
    view = run_view(Recorded(told(world, 30)), "run", {})  # type: ignore[arg-type]
    graph, timeline = blocks(view)
    assert view.title == "The mill: tick 30"
    assert [entry.number for entry in timeline.entries] == [n for n in range(19, 31) for _ in range(3)]
    assert ("the mill", "the yard") in graph.exits
    offered = {selection.name: (selection.highest, len(selection.choices)) for selection in view.selections}
    assert offered == {"tick": (30, 0), "character": (0, 3), "place": (0, 3), "search": (0, 0)}


def test_the_view_follows_a_character(world: World) -> None:
    view = run_view(Recorded(told(world, 30)), "run", {"character": "Vera", "tick": "7"})  # type: ignore[arg-type]
    _, timeline = blocks(view)
    assert all("Vera" in entry.who for entry in timeline.entries)
    assert timeline.entries[-1].number == 7
    (mind,) = (block for block in view.blocks if isinstance(block, TextBlock))
    assert mind.title == "Vera"
    assert "Remembers: I tried day 7." in mind.text


def test_the_view_finds_words_in_the_whole_story(world: World) -> None:
    view = run_view(Recorded(told(world, 200)), "run", {"search": "THE 7TH DAY", "place": "the road"})  # type: ignore[arg-type]
    _, timeline = blocks(view)
    assert [(entry.number, entry.place) for entry in timeline.entries] == [(7, "the road")]


@pytest.mark.parametrize(
    "selection", [{"tick": "x"}, {"tick": "0"}, {"tick": "9" * 30}, {"character": "nobody"}, {"place": "x"}, {"y": "z"}]
)
def test_a_selection_that_does_not_fit_is_ignored(world: World, selection: dict[str, str]) -> None:
    view = run_view(Recorded(told(world, 4)), "run", selection)  # type: ignore[arg-type]
    assert view.selections[1].chosen == view.selections[2].chosen == ""
    assert blocks(view)[1].entries


def test_the_map_has_the_spots_of_the_template_that_the_world_began_as() -> None:
    from wsap_sandbox.templates.loader import read_template, world_of

    shape = read_template("village")
    runs = Recorded(told(world_of(shape), 3))
    assert blocks(run_view(runs, "run", {}))[0].spots == {}, "its template is gone"  # type: ignore[arg-type]
    runs.template = "village"
    graph, _ = blocks(run_view(runs, "run", {}))  # type: ignore[arg-type]
    assert graph.spots == {one.name: one.spot for one in shape.places}
    assert graph.looks["The mill"] == "mill"


def test_a_story_that_has_not_begun_has_an_empty_view() -> None:
    assert run_view(Recorded(()), "run", {}).blocks == ()  # type: ignore[arg-type]
