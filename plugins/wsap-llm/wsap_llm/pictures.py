"""Pictures for models that see: as parts of messages, and in words for people."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Sequence

from wsap_core.protocol.views import ImageBlock, View
from wsap_core.seams.model import ImagePart, Part, Request, TextPart
from wsap_core.seams.model_errors import BadRequestError
from wsap_core.untrusted import sanitize

PNG = b"\x89PNG\r\n\x1a\n"
"""The signature of PNG files (PNG specification, section 5.2)."""
_ABOUT_PICTURES = re.compile(r"image|picture|vision|multi-?modal|mmproj", re.IGNORECASE)
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


def refused_picture(model: str, words: str) -> BadRequestError | None:
    """Return the error for a server's words about pictures that it does not take; None if they are about something
    else.

    The status does not matter: llama.cpp and Ollama answer 500 where a model can't see.
    """
    if not _ABOUT_PICTURES.search(words):
        return None
    return BadRequestError(
        f"{model} does not take pictures here ({words.rstrip('. ')}); leave --pictures out, or take a model that sees."
    )
