"""A story as the view of the dashboard and `wsap replay`, as Markdown, and as a self-contained HTML page."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib import resources
from itertools import chain, groupby
from string import Template
from types import MappingProxyType
from typing import Any

from wsap_core.errors import UsageError, WsapError
from wsap_core.protocol import PlaceGraphBlock, Selection, TextBlock, TimelineBlock, TimelineEntry, View
from wsap_core.seams.services import RunReader
from wsap_core.untrusted import single_line, strip_control
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import LedgerEvent, World
from wsap_sandbox.plugin import WORLDS
from wsap_sandbox.story.chapters import KINDS, Cast, Chapter, Scene, Spot, read_chapters
from wsap_sandbox.templates.loader import places_drawn
from wsap_sandbox.templates.shape import PlaceShape

Drawn = Mapping[str, PlaceShape]
"""Place id -> the place in the template, which says where it is on the map."""
TICKS = 12
"""Maximum ticks in a view."""
FOUND = 30
"""Maximum ticks in a view of search results: the last ones."""


def run_view(runs: RunReader, run: str, selection: Mapping[str, str]) -> View:
    """Return the view of a story up to the selected tick, filtered by the selected character, place and search."""
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
    followed = [
        TextBlock("\n".join(f"{said[key]}: {text}" for key, text in now.inner(one).items() if text), cast.name(one.id))
        for one in now.record.characters
        if one.id == who
    ]
    return View(
        (_map(now, _drawn_in(runs.about(run))), *followed, TimelineBlock(entries, said["story"])),
        f"{cast.title}: {said['tick'].lower()} {last}",
        (
            Selection("tick", str(last) if asked else "", highest=newest, title=said["tick"]),
            Selection("character", cast.name(who or ""), tuple(people), title=said["characters"]),
            Selection("place", cast.name(where or ""), tuple(map(cast.name, now.places)), title=said["places"]),
            Selection("search", words, title=said["search"]),
        ),
    )


def _entry(chapter: Chapter, scene: Scene) -> TimelineEntry:
    name = chapter.cast.name
    who = tuple(map(name, scene.people))
    return TimelineEntry(scene.told, chapter.tick, "", name(scene.place), who, tuple(chapter.rests_on(scene)))


def world_view(world: World, events: Iterable[LedgerEvent], drawn: Drawn = MappingProxyType({})) -> View:
    """Return the map of a world with all characters, and what was visible in each place in the last tick; `drawn` are
    the places of its template."""
    events = tuple(events)
    names = {place.id: place.name for place in world.places}
    exits = [(place.name, names[to]) for place in world.places for to in place.exits]
    here = {place.name: tuple(one.name for one in world.present(place.id)) for place in world.places}
    happened = []
    for place in world.places:
        texts = [event.text for event in events if event.public and event.place == place.id]
        if text := " ".join([*texts, place.moment]).strip():
            happened.append(TimelineEntry(text, world.tick or None, "", place.name, here[place.name]))
    people = {one.id: one.name for one in world.characters}
    spots, looks = _spots(names, drawn)
    graph = PlaceGraphBlock(tuple(names.values()), exits, None, here, spots, looks, _doing(events, people))
    return View((graph, TimelineBlock(happened)), world.title)


def _drawn_in(about: Mapping[str, Any]) -> Drawn:
    """Return the places of the template that a run's world began as; none if it had none, or it is gone."""
    game, options = str(about["game"]), about["config"]["options"]
    if options.get("world") is not None:
        return {}
    name = options.get("template") or (game if game in WORLDS else game.partition(":")[2] or "village")
    try:
        return places_drawn(str(name), str(options.get("language") or "en"))
    except WsapError:
        return {}


def _spots(names: Mapping[str, str], drawn: Drawn) -> tuple[dict[str, tuple[float, float]], dict[str, str]]:
    """Return name -> spot, and name -> look, of places (id -> name)."""
    known = {name: drawn[place] for place, name in names.items() if place in drawn}
    spots = {name: one.spot for name, one in known.items() if one.spot is not None}
    return spots, {name: one.look for name, one in known.items() if one.look}


def _doing(events: Iterable[LedgerEvent], names: Mapping[str, str]) -> dict[str, str]:
    """Return name -> the last that all could see somebody do."""
    acts = {names[event.actor]: event.text for event in events if event.kind == "act" and event.actor in names}
    return {name: text for name, text in acts.items() if text}


def _map(chapter: Chapter, drawn: Drawn) -> PlaceGraphBlock:
    name = chapter.cast.name
    exits = [(spot.name, name(to)) for spot in chapter.cast.places.values() for to in spot.exits]
    occupants = {name(place): tuple(map(name, people)) for place, people in chapter.where().items() if people}
    spots, looks = _spots({place: name(place) for place in chapter.places}, drawn)
    doing = _doing(chapter.record.events, chapter.cast.characters)
    return PlaceGraphBlock(tuple(map(name, chapter.places)), exits, None, occupants, spots, looks, doing)


def _searched(runs: RunReader, run: str, words: str, last: int) -> list[int]:
    """Return the last `FOUND` ticks whose narration contains the words."""
    told = (event["body"] for event in runs.history(run, "story", last=last))
    return sorted({note["tick"] for note in told if words.casefold() in str(note.get("text", "")).casefold()})[-FOUND:]


def _spans(ticks: Iterable[int]) -> list[tuple[int, int]]:
    """Return sorted ticks as spans without gaps."""
    runs = [[tick for _, tick in run] for _, run in groupby(enumerate(ticks), lambda pair: pair[1] - pair[0])]
    return [(run[0], run[-1]) for run in runs]


def _read(runs: RunReader, run: str, first: int, last: int) -> Iterator[Chapter]:
    return read_chapters(runs.history(run, *KINDS, first=first, last=last))


def html(chapters: Iterable[Chapter]) -> Iterator[str]:
    """Yield the HTML page in parts from the ticks, oldest first; their texts are escaped.

    Raises UsageError if there are no ticks.
    """
    rest = iter(chapters)
    first = next(rest, None)
    if first is None:
        raise UsageError("The story has no ticks yet; there is nothing to show.")
    cast = first.cast
    title, words = single_line(cast.title), words_of(cast.language).page
    script, style = _asset("page.js"), _asset("page.css")
    # Only this script and this style are allowed.
    policy = f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'"
    policy += "; form-action 'none'"
    head, rest_of_page = _asset("page.html").split("DATA")
    told = {"language": cast.language, "title": title, "noscript": words["script"]}
    yield Template(head).substitute({key: escape(text) for key, text in told.items()}, policy=policy, style=style)
    characters: dict[str, str] = {}
    places: dict[str, Spot] = {}
    for number, chapter in enumerate(chain((first,), rest)):
        # Characters who left the world still occur in earlier chapters.
        characters |= chapter.cast.characters
        places |= chapter.cast.places or {place: Spot(place) for place in chapter.places}
        yield ("," if number else "") + _json(_tick(chapter))
    whole = _cast(Cast(title, cast.language, characters, places)) | {"words": words}
    yield f"],{_json(whole)[1:]}" + Template(rest_of_page).substitute(script=script)


def _tick(chapter: Chapter) -> dict[str, Any]:
    people = {
        one.id: {key: strip_control(text) for key, text in chapter.inner(one).items()}
        for one in chapter.record.characters
    }
    scenes = [
        {
            "place": scene.place,
            "who": scene.people,
            "text": strip_control(scene.told),
            "rests": [single_line(line) for line in chapter.rests_on(scene)],
        }
        for scene in chapter.scenes()
    ]
    return {"n": chapter.tick, "where": chapter.where(), "people": people, "scenes": scenes}


def _cast(cast: Cast) -> dict[str, Any]:
    return {
        "title": cast.title,
        "characters": [[one, single_line(name)] for one, name in cast.characters.items()],
        "places": [[one, single_line(spot.name)] for one, spot in cast.places.items()],
        "exits": [[one, to] for one, spot in cast.places.items() for to in spot.exits],
    }


def _json(value: Any) -> str:
    # Any: JSON. Escaped so that nothing in it can close the surrounding element.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


def _asset(name: str) -> str:
    return resources.files("wsap_sandbox.story").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


# --- Markdown ------------------------------------------------------------------------------------

_MARKS = re.compile(r"([\\`*_\[\]<>|~])")
_LINE_MARKS = re.compile(r"^(\s*(?=[#+=-])|\s*\d+(?=[.)](?:\s|$)))", re.MULTILINE)


def markdown(chapters: Iterable[Chapter], *, events: bool = False) -> Iterator[str]:
    """Yield a story in parts, each ending in a newline; its texts are escaped."""
    titled = False
    for chapter in chapters:
        name, words = chapter.cast.name, words_of(chapter.cast.language).page
        if not titled and chapter.cast.title:
            yield f"# {_line(chapter.cast.title)}\n"
        titled = True
        yield f"\n## {words['tick']} {chapter.tick}\n"
        for scene in chapter.scenes():
            people = ", ".join(_line(name(one)) for one in scene.people)
            yield f"\n### {_line(name(scene.place))}{f' · {people}' if people else ''}\n"
            if scene.told:
                yield f"\n{_text(scene.told)}\n"
            if events and scene.events:
                yield "\n" + "".join(f"- {_line(chapter.line(event))}\n" for event in scene.events)


def _text(text: str) -> str:
    return _LINE_MARKS.sub(r"\1\\", _MARKS.sub(r"\\\1", strip_control(text).strip()))


def _line(text: str) -> str:
    return _text(single_line(text))
