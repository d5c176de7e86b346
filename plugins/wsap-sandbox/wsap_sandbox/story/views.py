"""What the dashboard and `wsap replay` show of a story: a map, a timeline, one character to follow, and a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
    shown = _Shown(now.cast, selection, words)
    entries = [entry for chapter in chapters for entry in shown.entries(chapter)]
    said = words_of(now.cast.language).page
    timeline = TimelineBlock(entries, said["story"])
    return View(
        (_map(now), *shown.followed(now), timeline),
        f"{now.cast.title}: {said['tick'].lower()} {last}",
        (
            Selection("tick", str(last) if asked else "", highest=newest, title=said["tick"]),
            Selection("character", shown.character, tuple(now.cast.characters.values()), title=said["characters"]),
            Selection("place", shown.place, tuple(map(now.cast.name, now.places)), title=said["places"]),
            Selection("search", words, title=said["search"]),
        ),
    )


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


class _Shown:
    """Which scenes are shown."""

    def __init__(self, cast: Cast, selection: Mapping[str, str], words: str) -> None:
        people = {name: one for one, name in cast.characters.items()}
        spots = {spot.name: one for one, spot in cast.places.items()}
        self.character = selection.get("character", "") if selection.get("character") in people else ""
        self.place = selection.get("place", "") if selection.get("place") in spots else ""
        self._who, self._where = people.get(self.character), spots.get(self.place)
        self._words = words.casefold()

    def entries(self, chapter: Chapter) -> Iterable[TimelineEntry]:
        name = chapter.cast.name
        for scene in chapter.scenes():
            text = scene.told
            if self._fits(scene, text):
                who = tuple(map(name, scene.people))
                rests = tuple(chapter.rests_on(scene))
                yield TimelineEntry(text, chapter.tick, "", name(scene.place), who, rests)

    def followed(self, chapter: Chapter) -> Iterable[TextBlock]:
        change = chapter.change(self._who) if self._who is not None else None
        if change is None:
            return
        words = words_of(chapter.cast.language).page
        told = chapter.inner(change).items()
        yield TextBlock("\n".join(f"{words[key]}: {text}" for key, text in told if text), self.character)

    def _fits(self, scene: Scene, text: str) -> bool:
        return bool(
            (self._where is None or scene.place == self._where)
            and (self._who is None or self._who in scene.people)
            and self._words in text.casefold()
            and (text or scene.events)
        )


def _map(chapter: Chapter) -> PlaceGraphBlock:
    name = chapter.cast.name
    exits = [(spot.name, name(to)) for spot in chapter.cast.places.values() for to in spot.exits]
    occupants = {name(place): tuple(map(name, people)) for place, people in chapter.where().items() if people}
    return PlaceGraphBlock(tuple(map(name, chapter.places)), exits, None, occupants)


def _searched(runs: RunReader, run: str, words: str, last: int) -> list[int]:
    """Return the last ticks with these words in their narration."""
    found: dict[int, None] = {}
    for event in runs.history(run, "story", last=last):
        if words.casefold() in str(event["body"].get("text", "")).casefold():
            found[event["body"]["tick"]] = None
    return sorted(found)[-FOUND:]


def _spans(ticks: Iterable[int]) -> list[tuple[int, int]]:
    """Return ticks in order as spans without gaps."""
    spans: list[tuple[int, int]] = []
    for tick in ticks:
        if spans and spans[-1][1] == tick - 1:
            spans[-1] = (spans[-1][0], tick)
        else:
            spans.append((tick, tick))
    return spans


def _read(runs: RunReader, run: str, first: int, last: int) -> Iterator[Chapter]:
    return read_chapters(runs.history(run, *KINDS, first=first, last=last))
