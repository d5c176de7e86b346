"""The replay page: one HTML file without network access, with all texts of players and models embedded as data.

Its Content-Security-Policy allows only scripts with known hashes and no network requests: injected scripts do not run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from wsap_core.textfile import written_to
from wsap_core.untrusted import single_line
from wsap_tossim.engine.game import Game
from wsap_tossim.replay.story import Story, View, page_data

__all__ = ["page_of", "replay_page", "write_replay"]

SCRIPTS = (
    *("data.js", "dom.js", "projection.js", "rows.js", "roster.js"),
    *("beliefs.js", "fork.js", "reader.js", "start.js"),
)
"""The parts of the page's script, which share one scope."""


def replay_page(
    game: Game,
    names: Sequence[str],
    thoughts: Iterable[tuple[int, int, str]] = (),
    beliefs: Iterable[tuple[int, int, Mapping[int, float]]] = (),
    view: View | None = None,
    *,
    played_by: Sequence[str] = (),
) -> str:
    """Return the page of a game, finished or not, as HTML.

    Args:
        game: the game.
        names: of the players, by number.
        thoughts: round, player and text of each, in order.
        beliefs: day, player, and for each other player the probability that it is evil.
        view: the only view to include, so that the page holds nothing else; None for all views.
        played_by: who played each seat.

    Raises:
        UsageError: the number of names is wrong, or there is no such player.
    """
    return page_of(Story.of(game, names, thoughts, beliefs, played_by), view)


def write_replay(
    path: Path,
    game: Game,
    names: Sequence[str],
    thoughts: Iterable[tuple[int, int, str]] = (),
    beliefs: Iterable[tuple[int, int, Mapping[int, float]]] = (),
    view: View | None = None,
    *,
    played_by: Sequence[str] = (),
) -> None:
    """Write the page of a game atomically; an existing file is overwritten.

    Raises:
        UsageError: as in `replay_page`, or the file can't be written.
    """
    write_text(path, replay_page(game, names, thoughts, beliefs, view, played_by=played_by))


def write_text(path: Path, text: str) -> None:
    """Write a file atomically.

    Raises:
        UsageError: it can't be written.
    """
    with written_to(path) as file:
        file.write(text)


def page_of(story: Story, view: View | None = None) -> str:
    """Return the page of a story; see `replay_page`."""
    data = page_data(story, view)
    style, script = _asset("page.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    holes = {
        "policy": policy,
        "title": html.escape(_title(data)),
        "style": style,
        "data": embedded(data),
        "script": script,
    }
    page = _asset("page.html")
    for name, value in holes.items():
        before, hole, after = page.partition(f"<!--{name}-->")
        assert hole, f"page.html has a place for {name}"
        page = before + value + after
    return page


def embedded(data: Mapping[str, Any]) -> str:
    """Return JSON that is safe inside a script element: ASCII without `<`, `>` or `&`."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _title(data: Mapping[str, Any]) -> str:
    words = f"The town of hidden roles: {single_line(data['mode'])[:60]}, {len(data['names'])} players"
    return words.encode("ascii", "replace").decode("ascii")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


@cache
def _asset(name: str) -> str:
    return resources.files("wsap_tossim.replay").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    parts = "\n".join(_asset(name) for name in SCRIPTS)
    return f"'use strict';\n(() => {{\n{parts}\n}})();\n"
