"""Pictures shown to models: each stored once in the log, and referenced by its hash."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from wsap_core.errors import WireError
from wsap_core.seams.model import ImagePart, Message, Part, TextPart
from wsap_llm.pictures import size_of
from wsap_nexus.runs.recorder import Recorder

# Any, in this module: JSON.

REMEMBERED = 65_536
"""Pictures that a run is known to hold; one shown again after so many others is recorded again."""


class PictureBook:
    """The pictures of one run, over all its seats.

    Args:
        recorder: where new ones are recorded, as events `picture`.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[str, None] = {}

    def keep(self, messages: Iterable[Message]) -> list[Message | dict[str, Any]]:
        """Return messages as they are recorded, each picture in them by its name; new pictures are recorded first."""
        return [m if isinstance(m.content, str) else self._kept(m.role, m.content) for m in messages]

    def note(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Take in recorded messages: the pictures they name are in the log."""
        for message in messages:
            for part in parts_of(message):
                if "sha256" in part:
                    self._remember(str(part["sha256"]))

    def _kept(self, role: str, content: Iterable[Part]) -> dict[str, Any]:
        return {"role": role, "content": [p if isinstance(p, TextPart) else self._named(p) for p in content]}

    def _named(self, picture: ImagePart) -> dict[str, Any]:
        name = picture.sha256
        width, height = size_of(picture) or (0, 0)
        about = {"sha256": name, "media_type": picture.media_type, "width": width, "height": height}
        if name not in self._known:
            self._recorder.write("picture", {**about, "base64": picture.base64})
        self._remember(name)
        return {**about, "alt": picture.alt}

    def _remember(self, name: str) -> None:
        self._known.pop(name, None)
        self._known[name] = None
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]


def parts_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a recorded message; none if it is all text."""
    content = message["content"]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def recorded_text(message: Mapping[str, Any]) -> str:
    """Return a recorded message as people read it, each picture as `[image 64x64]`.

    Raises:
        WireError: it is no message.
    """
    try:
        content = message["content"]
        if isinstance(content, str):
            return content
        texts = [p["text"] if "text" in p else _in_words(p) for p in parts_of(message)]
        return "\n".join(str(text) for text in texts if text)
    except (KeyError, TypeError) as error:
        raise WireError(f"A recorded message is damaged: {error}.") from error


def read_picture(event: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the name and the file of a recorded picture, from the body of an event `picture`.

    Raises:
        WireError: the event is damaged.
    """
    try:
        return str(event["sha256"]), base64.b64decode(event["base64"], validate=True)
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"A recorded picture is damaged: {error}.") from error


def _in_words(part: Mapping[str, Any]) -> str:
    return f"[image {part['width']}x{part['height']}]" if part["width"] else "[image]"
