"""Text that a game, a player, a file or a model wrote, made harmless where it is shown.

A module of its own, because the command line needs it and nothing of the protocol's types.
"""

from __future__ import annotations

import re

# C0 and C1 controls, line and paragraph separators, the marks that reorder text, and halves of
# surrogate pairs, which no output can encode.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_UNSAFE_RUN = re.compile(f"[{_UNSAFE}]+")


def one_line(text: object) -> str:
    """Return text on one line, with control and direction-changing characters replaced by a space."""
    return _UNSAFE_RUN.sub(" ", str(text)).strip()


def printable(text: str) -> str:
    """Return text of several lines with every control and direction-changing character replaced but newlines."""
    return "\n".join(_UNSAFE_RUN.sub(" ", line) for line in text.split("\n"))
