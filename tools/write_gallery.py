"""Write docs/gallery.md: all installed games, each with a picture, what it is, and the command that plays it.

    python tools/write_gallery.py              the page
    python tools/write_gallery.py --pictures   the pictures, too: the live view at one step of a real run

A test compares the page with what this writes. Draw the pictures again when a game or the live view changes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from wsap_core.host import PluginHost
from wsap_core.protocol.lines import plural
from wsap_core.specs import AdapterSpec

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gallery.md"
IMAGES = ROOT / "docs" / "images" / "games"
SIZE = (96, 24)

HEAD = """# Gallery

The games that come with WSAP, each at one step of a real run, drawn as a terminal shows it.
[Play](how-to/watch-and-replay.md), [let a model play](how-to/play-with-a-model.md), or
[write a game of your own](how-to/write-a-game.md).
"""


class Shown(NamedTuple):
    """A game of the gallery."""

    game: str
    """Its name, of a plugin's collection with one of its games."""
    step: int
    """The step of the picture."""
    seed: int = 3


GAMES = (
    Shown("crafter", 90, 11),
    Shown("minigrid", 20),
    Shown("starbound", 120),
    Shown("morrowind", 30),
    Shown("tossim", 40),
    Shown("village", 12),
    Shown("lighthouse", 12),
    Shown("matrix", 10),
    Shown("openspiel:connect_four", 12),
    Shown("pettingzoo:classic/tictactoe-v3", 5),
    Shown("gymnasium:FrozenLake-v1", 5),
    Shown("textarena:TicTacToe-v0", 1),
)
ELSEWHERE = {"openenv", "sandbox", "echo", "matrix-free", "matrix-turns"}
"""Installed games without a picture: one needs a server, one a template, and three look like others."""


def picture_of(shown: Shown) -> Path:
    """Return where the picture of a game is."""
    return IMAGES / f"{''.join(c if c.isalnum() else '-' for c in shown.game.lower())}.svg"


def page() -> str:
    """Return the page."""
    host = PluginHost.discovered()
    parts = [HEAD]
    for shown in GAMES:
        entry = host.games.entry(shown.game)
        spec = entry.spec
        title = spec.display_title + (f": {shown.game.partition(':')[2]}" if ":" in shown.game else "")
        parts.append(
            f"## {title}\n\n{spec.summary} {_seats(spec)}, in `{entry.distribution}`.\n\n"
            f"![{title}, played]({picture_of(shown).relative_to(PAGE.parent).as_posix()})\n\n"
            f"```text\nwsap play {shown.game} --seed {shown.seed}\n```\n"
        )
    return "\n".join(parts)


def _seats(spec: AdapterSpec) -> str:
    least, most = spec.seats
    return plural(most, "seat") if least == most else f"{least} to {most} seats"


def draw_pictures(only: str | None) -> None:
    """Draw the pictures of all games, or of one."""
    from picture import draw  # beside this file

    IMAGES.mkdir(parents=True, exist_ok=True)
    for shown in GAMES:
        if only in (None, shown.game):
            svg = draw(shown.game, None, shown.seed, shown.step, SIZE)
            picture_of(shown).write_text(svg, encoding="utf-8")
            print(f"{picture_of(shown).name}: {len(svg.encode()) / 1000:.0f} kB")


def main() -> None:
    """Write the page, and the pictures if asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--pictures", action="store_true", help="draw the pictures, too")
    parser.add_argument("--game", help="only of this game")
    given = parser.parse_args()
    if given.pictures:
        draw_pictures(given.game)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
