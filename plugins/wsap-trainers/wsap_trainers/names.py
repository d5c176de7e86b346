"""Names of a game as names of Python."""

from __future__ import annotations

import keyword
import re


def python_name(name: str, taken: tuple[str, ...] = ()) -> str:
    """Return a name as a public one of Python that is not taken."""
    found = re.sub(r"\W", "_", name).lstrip("_")
    if not found or found[0].isdigit() or keyword.iskeyword(found) or found in taken:
        return f"do_{found}"
    return found
