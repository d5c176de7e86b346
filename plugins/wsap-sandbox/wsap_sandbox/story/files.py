"""A story as a file: Markdown, or a page without a network, with map, timeline, characters to follow, and search."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from html import escape
from importlib import resources
from itertools import chain
from string import Template
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line, strip_control
from wsap_sandbox.languages import words_of
from wsap_sandbox.story.chapters import Cast, Chapter, Spot


def html(chapters: Iterable[Chapter]) -> Iterator[str]:
    """Give the page part by part, from the ticks, oldest first; text stays text in it.

    Raises UsageError if there are none.
    """
    rest = iter(chapters)
    first = next(rest, None)
    if first is None:
        raise UsageError("The story has no ticks yet, so that there is nothing to show.")
    cast = first.cast
    title, words = single_line(cast.title), words_of(cast.language).page
    script, style = _asset("page.js"), _asset("page.css")
    # Only this script and this style count, whatever the story says.
    policy = f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'"
    policy += "; form-action 'none'"
    head, rest_of_page = _asset("page.html").split("DATA")
    told = {"language": cast.language, "title": title, "noscript": words["script"]}
    yield Template(head).substitute({key: escape(text) for key, text in told.items()}, policy=policy, style=style)
    characters: dict[str, str] = {}
    places: dict[str, Spot] = {}
    for number, chapter in enumerate(chain((first,), rest)):
        # Whoever has left the world is still in the chapters before.
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
    # Any: JSON. Nothing in it can end the element that it stands in.
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
    """Give a story part by part, each ending in a newline; what people and models wrote is text, never markup."""
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
