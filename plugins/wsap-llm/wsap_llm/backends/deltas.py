"""The events of a stream that only say the next piece of text, read without reading all of them anew.

Such events differ in nothing but the piece: the same identity, model and fields stand around it each
time. What is around it is learned from one event and compared from then on, which takes a tenth of the
time of reading it as JSON. Where anything differs, the event is read as every other.
"""

from __future__ import annotations

import json
from json.decoder import scanstring  # type: ignore[attr-defined]  # what json itself reads strings with
from typing import Any

_TRIES = 3
"""Some servers put something new into every event; they are not learned from for ever."""

_KEY = '"content":'


class Deltas:
    """Knows the event that says a piece of text, once it has seen one."""

    def __init__(self) -> None:
        self._before = ""
        self._after = ""
        self._tries = _TRIES

    def text(self, data: str) -> str | None:
        """Return the piece of text that an event says, if that is all it does in the way known; None otherwise."""
        before = self._before
        if not before or not data.startswith(before):
            return None
        try:
            # From behind the opening quote to behind the closing one, as json itself reads a string.
            text, end = scanstring(data, len(before), True)
        except ValueError:
            return None
        return text if text and data[end:] == self._after else None

    def learn(self, data: str, found: Any) -> None:
        """Learn from an event, if it does nothing but say a piece of text.

        Args:
            data: the event.
            found: what it is as JSON (Any).
        """
        if not self._tries or not _only_says(found):
            return
        self._tries -= 1
        at = data.find(_KEY) + len(_KEY)
        at += len(data[at:]) - len(data[at:].lstrip(" "))
        if data[at : at + 1] != '"':
            return
        before, delta = data[: at + 1], found["choices"][0]["delta"]
        said = delta["content"]
        other = "x" if said != "x" else "y"
        try:
            _, end = scanstring(data, len(before), True)
            probe = json.loads(f'{before}{other}"{data[end:]}')
        except ValueError:
            return
        delta["content"] = other
        if probe == found:  # it was that string and no other of the name
            self._before, self._after = before, data[end:]
        delta["content"] = said


def _only_says(found: Any) -> bool:
    choices = found.get("choices")
    if found.get("usage") or not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return False
    choice, delta = choices[0], choices[0].get("delta")
    if choice.get("finish_reason") or choice.get("stop_reason") or not isinstance(delta, dict):
        return False
    if not isinstance(delta.get("content"), str) or not delta["content"]:
        return False
    return not (delta.get("reasoning_content") or delta.get("reasoning"))
