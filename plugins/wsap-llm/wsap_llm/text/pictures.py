"""Pictures of the world, as parts of messages to models that accept images."""

from __future__ import annotations

import base64
import binascii
import logging
import struct
from collections.abc import Callable, Sequence

from wsap_core.errors import UsageError
from wsap_core.protocol.views import ImageBlock, View
from wsap_core.seams.agent import GetView
from wsap_core.seams.model import Backend, ImagePart, Part, Request, TextPart
from wsap_core.untrusted import sanitize, single_line
from wsap_llm.options.llm import LLMOptions

PNG = b"\x89PNG\r\n\x1a\n"
"""The signature of PNG files (PNG specification, section 5.2)."""
LONGEST_ALT = 200
"""Maximum length of a picture's alternative text in characters."""


def picture_of(view: View | None) -> ImagePart | None:
    """Return the first picture of a view as a part of a message; None if there is none, or it is not a PNG."""
    blocks = view.blocks if view is not None else ()
    block = next((b for b in blocks if isinstance(b, ImageBlock)), None)
    if block is None:
        return None
    part = ImagePart(block.base64, alt=sanitize(block.alt, LONGEST_ALT))
    return part if size_of(part) is not None else None


def size_of(part: ImagePart) -> tuple[int, int] | None:
    """Return a picture's width and height in pixels from its header, the first chunk of the file; None if it is not a
    PNG."""
    try:
        head = base64.b64decode(part.base64[:32], validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(head) < 24 or not head.startswith(PNG) or head[12:16] != b"IHDR":
        return None
    width, height = struct.unpack(">II", head[16:24])
    return (width, height) if width and height else None


def with_picture(text: str, picture: ImagePart | None) -> str | Sequence[Part]:
    """Return the content of a message: the text, then the picture, if any, so that the prefix does not change when
    later messages leave it out."""
    return text if picture is None else (TextPart(text), picture)


def has_pictures(request: Request) -> bool:
    """Return whether a request contains a picture."""
    return any(isinstance(p, ImagePart) for m in request.messages if not isinstance(m.content, str) for p in m.content)


class Vision:
    """One agent's pictures of the world, if requested. `tell`, by default the log, receives a warning if there are
    none."""

    def __init__(self, backend: Backend, options: LLMOptions, tell: Callable[[str], None] | None = None) -> None:
        self._backend = backend
        self._options = options
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._asked = False
        self.get_view: GetView | None = None
        """Returns the current view; None if none is available."""

    def check(self) -> None:
        """Raise UsageError if pictures were requested and the model does not accept images."""
        if self._options.pictures and self._backend.abilities.images is False:
            raise UsageError(
                f"{self._backend.model} does not accept images; omit --pictures, or use a model that does: "
                "`wsap models` lists them."
            )

    async def picture(self) -> ImagePart | None:
        """Return the current picture; None if there is none, or none was requested. Raises UsageError for strict play
        if the world has no first picture."""
        if not self._options.pictures:
            return None
        picture = picture_of(await self.get_view()) if self.get_view is not None else None
        if picture is None and not self._asked:
            shows = f"{single_line(self._options.game_name)} provides no pictures"
            if self._options.strict:
                raise UsageError(f"{shows}, but strict play was requested; omit --pictures or --strict.")
            self._tell(f"{shows}, so the model plays by text alone.")
        self._asked = True
        return picture
