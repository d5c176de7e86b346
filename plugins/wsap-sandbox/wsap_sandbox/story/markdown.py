"""A story as a Markdown log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from wsap_core.untrusted import single_line, strip_control
from wsap_sandbox.languages import words_of
from wsap_sandbox.story.chapters import Chapter

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
