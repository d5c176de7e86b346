"""Lines and lists of the protocol's text form, below every protocol type, so that each type can render itself.

Whatever a game or player wrote is data: line breaks and control characters are removed, so that it can't forge a
section of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line


def pairs(values: Mapping[str, Any], words: Words = ENGLISH) -> str:
    """Return one `name: value` line for each item."""
    return "\n".join(f"{single_line(key)}: {shown(value, words)}" for key, value in values.items())


def shown(value: Any, words: Words = ENGLISH) -> str:
    """Return a value as a reader wants it: yes and no, short numbers, one line of text."""
    if isinstance(value, bool):
        return words.say("yes" if value else "no")
    return words.say(number(value)) if isinstance(value, int | float) else single_line(value)


def number(value: float) -> str:
    """Return a number without needless digits."""
    if isinstance(value, int):
        # Python refuses to write out more than 4300 digits, and no reader wants them.
        return str(value) if value.bit_length() < 1024 else "beyond counting"
    return str(int(value)) if value.is_integer() else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


def plural(count: float, noun: str) -> str:
    """Return a count with its noun: "1 run", "2 runs"."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def bullets(lines: Iterable[str]) -> str:
    """Return one `- ` line for each item."""
    return "\n".join(f"- {single_line(line)}" for line in lines)


def where(direction: str, distance: float | None, words: Words = ENGLISH) -> str:
    """Return a distance and a direction, such as `3 north`."""
    direction = words.say(single_line(direction))
    return direction if not distance else f"{number(distance)} {direction}"


def legs(*parts: tuple[int, str, str], between: str = " ") -> str:
    """Return how to walk to a cell, such as `3 south 3 east`: each part is a number of cells, the word for its way, and
    the one for the opposite way, which a number below 0 takes; "here" if all numbers are 0."""
    return between.join(f"{abs(n)} {way if n > 0 else back}" for n, way, back in parts if n) or "here"


def dedent(text: str) -> str:
    """Return a text with every line stripped."""
    return "\n".join(line.strip() for line in text.strip().splitlines())
