"""Pictures for models that see: of the world, and as parts of messages."""

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
from wsap_llm.options import LLMOptions

PNG = b"\x89PNG\r\n\x1a\n"
"""The signature of PNG files (PNG specification, section 5.2)."""
LONGEST_ALT = 200
"""Most characters of the words that say what a picture shows."""


def picture_of(view: View | None) -> ImagePart | None:
    """Return the first picture of a view as a part of a message; None where there is none, or none that is a PNG."""
    blocks = view.blocks if view is not None else ()
    block = next((b for b in blocks if isinstance(b, ImageBlock)), None)
    if block is None:
        return None
    part = ImagePart(block.base64, alt=sanitize(block.alt, LONGEST_ALT))
    return part if size_of(part) is not None else None


def size_of(part: ImagePart) -> tuple[int, int] | None:
    """Return a picture's width and height in pixels, as its file says; None if it is no PNG.

    Only the beginning is decoded: the header is always the first chunk of the file.
    """
    try:
        head = base64.b64decode(part.base64[:32], validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(head) < 24 or not head.startswith(PNG) or head[12:16] != b"IHDR":
        return None
    width, height = struct.unpack(">II", head[16:24])
    return (width, height) if width and height else None


def with_picture(text: str, picture: ImagePart | None) -> str | Sequence[Part]:
    """Return what a message holds: the text, and after it the picture if there is one.

    The picture is last, so that everything before it stays a prefix when it is left out later.
    """
    return text if picture is None else (TextPart(text), picture)


def has_pictures(request: Request) -> bool:
    """Return whether there is a picture in a request."""
    return any(isinstance(p, ImagePart) for m in request.messages if not isinstance(m.content, str) for p in m.content)


class Vision:
    """One agent's view of the world, where pictures were asked for. That the world shows none is told once; to the log
    of warnings where `tell` is None."""

    def __init__(self, backend: Backend, options: LLMOptions, tell: Callable[[str], None] | None = None) -> None:
        self._backend = backend
        self._options = options
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._asked = False
        self.get_view: GetView | None = None
        """Gives what is drawn now; None where nobody lets the agent see."""

    def check(self) -> None:
        """Check, before a session begins, that the model can see the pictures that were asked for. Raises UsageError if
        it can't."""
        if self._options.pictures and self._backend.abilities.images is False:
            raise UsageError(
                f"{self._backend.model} can't see pictures; leave --pictures out, or take a model that can: "
                "`wsap models` says which."
            )

    async def picture(self) -> ImagePart | None:
        """Return the picture of this moment; None where there is none, or none was asked for. Raises UsageError if the
        world shows no picture at first, and strict play was asked for."""
        if not self._options.pictures:
            return None
        picture = picture_of(await self.get_view()) if self.get_view is not None else None
        if picture is None and not self._asked:
            shows = f"{single_line(self._options.game_name)} shows no pictures"
            if self._options.strict:
                raise UsageError(f"{shows}, and strict play was asked for; leave --pictures or --strict out.")
            self._tell(f"{shows}, so the model plays by the text alone.")
        self._asked = True
        return picture
