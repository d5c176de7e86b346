"""What the dashboard and `wsap replay` show of a story: a map, a timeline, one character to follow, and a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from wsap_core.protocol import PlaceGraphBlock, Selection, TextBlock, TimelineBlock, TimelineEntry, View
from wsap_core.seams.services import RunReader
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import LedgerEvent, World
from wsap_sandbox.story.chapters import KINDS, Cast, Chapter, Scene, read_chapters

TICKS = 12
"""Ticks that are shown at once."""
FOUND = 30
"""Ticks with what is searched for that are shown at most, the last ones."""


def run_view(runs: RunReader, run: str, selection: Mapping[str, str]) -> View:
    """Return the view of a story up to the tick selected, of a character and a place if selected."""
    newest = runs.ticks(run)
    if not newest:
        return View(selections=(Selection("tick", highest=0),))
    asked = selection.get("tick", "")
    last = max(1, min(int(asked), newest)) if asked.isdecimal() and len(asked) < 10 else newest
    words = selection.get("search", "").strip()
    ticks = _searched(runs, run, words, last) if words else range(max(1, last - TICKS + 1), last + 1)
    chapters = [chapter for first, end in _spans(ticks) for chapter in _read(runs, run, first, end)]
    now = next((chapter for chapter in chapters if chapter.tick == last), None) or next(_read(runs, run, last, last))
    cast, said = now.cast, words_of(now.cast.language).page
    people = {name: one for one, name in cast.characters.items()}
    spots = {spot.name: one for one, spot in cast.places.items()}
    who, where = people.get(selection.get("character", "")), spots.get(selection.get("place", ""))

    def fits(scene: Scene) -> bool:
        here = where in (None, scene.place) and (who is None or who in scene.people)
        return here and words.casefold() in scene.told.casefold() and bool(scene.told or scene.events)

    entries = [_entry(chapter, scene) for chapter in chapters for scene in chapter.scenes() if fits(scene)]
    change = now.change(who) if who is not None else None
    inner = {} if change is None else now.inner(change)
    text = "\n".join(f"{said[key]}: {text}" for key, text in inner.items() if text)
    followed = [] if change is None or who is None else [TextBlock(text, cast.name(who))]
    return View(
        (_map(now), *followed, TimelineBlock(entries, said["story"])),
        f"{cast.title}: {said['tick'].lower()} {last}",
        (
            Selection("tick", str(last) if asked else "", highest=newest, title=said["tick"]),
            Selection("character", _named(cast, who), tuple(people), title=said["characters"]),
            Selection("place", _named(cast, where), tuple(map(cast.name, now.places)), title=said["places"]),
            Selection("search", words, title=said["search"]),
        ),
    )


def _entry(chapter: Chapter, scene: Scene) -> TimelineEntry:
    name = chapter.cast.name
    who = tuple(map(name, scene.people))
    return TimelineEntry(scene.told, chapter.tick, "", name(scene.place), who, tuple(chapter.rests_on(scene)))


def _named(cast: Cast, part: str | None) -> str:
    return "" if part is None else cast.name(part)


def world_view(world: World, events: Iterable[LedgerEvent]) -> View:
    """Return the map of a world with everybody on it, and what everybody could see in each place in the last tick."""
    names = {place.id: place.name for place in world.places}
    exits = [(place.name, names[to]) for place in world.places for to in place.exits]
    here = {place.name: tuple(one.name for one in world.present(place.id)) for place in world.places}
    happened = []
    for place in world.places:
        texts = [event.text for event in events if event.public and event.place == place.id]
        if text := " ".join([*texts, place.moment]).strip():
            happened.append(TimelineEntry(text, world.tick or None, "", place.name, here[place.name]))
    graph = PlaceGraphBlock(tuple(names.values()), tuple(exits), occupants=here)
    return View((graph, TimelineBlock(happened)), world.title)


def _map(chapter: Chapter) -> PlaceGraphBlock:
    name = chapter.cast.name
    exits = [(spot.name, name(to)) for spot in chapter.cast.places.values() for to in spot.exits]
    occupants = {name(place): tuple(map(name, people)) for place, people in chapter.where().items() if people}
    return PlaceGraphBlock(tuple(map(name, chapter.places)), exits, None, occupants)


def _searched(runs: RunReader, run: str, words: str, last: int) -> list[int]:
    """Return the last ticks with these words in their narration."""
    told = (event["body"] for event in runs.history(run, "story", last=last))
    return sorted({note["tick"] for note in told if words.casefold() in str(note.get("text", "")).casefold()})[-FOUND:]


def _spans(ticks: Iterable[int]) -> list[tuple[int, int]]:
    """Return ticks in order as spans without gaps."""
    runs = [[tick for _, tick in run] for _, run in groupby(enumerate(ticks), lambda pair: pair[1] - pair[0])]
    return [(run[0], run[-1]) for run in runs]


def _read(runs: RunReader, run: str, first: int, last: int) -> Iterator[Chapter]:
    return read_chapters(runs.history(run, *KINDS, first=first, last=last))
