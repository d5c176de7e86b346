"""Where there is too little room, the newest of each part is shown, and of a text its beginning as well."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from wsap_nexus.terminal.blocks import Stacked, rows_for


def drawn(parts: list[tuple[str, int, bool]], height: int) -> list[str]:
    """Draw parts with so many numbered lines each."""
    console = Console(file=io.StringIO(), width=20, height=height, color_system=None)
    things = [(title, Text("\n".join(f"{n}" for n in range(count))), head) for title, count, head in parts]
    lines = console.render_lines(Stacked(things), console.options.update(height=height), pad=False)
    return ["".join(s.text for s in line).rstrip() for line in lines if line][:height]


def test_what_fits_is_shown_whole() -> None:
    assert drawn([("", 3, True), ("Chat", 2, False)], 10) == ["0", "1", "2", "Chat", "0", "1", "", "", "", ""]


def test_a_text_keeps_its_beginning_and_its_end() -> None:
    assert drawn([("", 100, True)], 7) == ["0", "1", "2", "⋮", "97", "98", "99"]


def test_a_chat_keeps_its_end() -> None:
    assert drawn([("", 100, False)], 4) == ["96", "97", "98", "99"]


def test_a_long_chat_leaves_room_for_a_short_table() -> None:
    assert drawn([("", 2, True), ("Chat", 100, False)], 6) == ["0", "1", "Chat", "97", "98", "99"]


@pytest.mark.parametrize(
    ("needs", "rows", "given"),
    [([3, 2], 10, [3, 2]), ([100], 7, [7]), ([100, 2], 6, [4, 2]), ([10, 10, 10], 7, [2, 2, 3]), ([5, 5], 0, [0, 0])],
)
def test_rows_are_shared_out_evenly(needs: list[int], rows: int, given: list[int]) -> None:
    assert rows_for(needs, rows) == given
