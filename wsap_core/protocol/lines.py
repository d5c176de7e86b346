"""Lines and lists of the protocol's text form.

Line breaks and control characters in text from games and players are removed, so that it can't forge a section.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line


def pairs(values: Mapping[str, Any], words: Words = ENGLISH) -> str:
    """Return one `name: value` line per item."""
    return "\n".join(f"{single_line(key)}: {shown(value, words)}" for key, value in values.items())


def shown(value: Any, words: Words = ENGLISH) -> str:
    """Return a value for a reader: yes or no, a short number, or one line of text; parts of nested ones by commas."""
    if isinstance(value, bool):
        return words.say("yes" if value else "no")
    if isinstance(value, Mapping | list | tuple):
        named = value.items() if isinstance(value, Mapping) else (("", each) for each in value)
        return ", ".join(f"{single_line(k)} {_inner(v, words)}".lstrip() for k, v in named) or words.say("none")
    return words.say(number(value)) if isinstance(value, int | float) else single_line(value)


def _inner(value: Any, words: Words) -> str:
    text = shown(value, words)
    return f"({text})" if isinstance(value, Mapping | list | tuple) and len(value) > 1 else text


def number(value: float) -> str:
    """Return a number with few digits."""
    if isinstance(value, int):
        # Python does not format integers of more than 4300 digits.
        return str(value) if value.bit_length() < 1024 else "beyond counting"
    return str(int(value)) if value.is_integer() else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


def plural(count: float, noun: str) -> str:
    """Return a count with its noun: "1 run", "2 runs"."""
    return f"{count if isinstance(count, int) else format(count, 'g')} {noun}" + ("" if count == 1 else "s")


def bullets(lines: Iterable[str]) -> str:
    """Return one `- ` line per item."""
    return "\n".join(f"- {single_line(line)}" for line in lines)


def where(direction: str, distance: float | None, words: Words = ENGLISH) -> str:
    """Return a distance and a direction, such as `3 north`."""
    direction = words.say(single_line(direction))
    return direction if not distance else f"{number(distance)} {direction}"


def legs(*parts: tuple[int, str, str], between: str = " ") -> str:
    """Return directions such as `3 south 3 east`, or "here". Each part is a number of cells, the word for a positive
    number and that for a negative one."""
    return between.join(f"{abs(n)} {way if n > 0 else back}" for n, way, back in parts if n) or "here"


def dedent(text: str) -> str:
    """Return a text with every line stripped."""
    return "\n".join(line.strip() for line in text.strip().splitlines())
