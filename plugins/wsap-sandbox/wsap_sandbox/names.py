"""Names that are easy to tell apart: one rule for templates, world files, newcomers and influences."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import combinations

from wsap_sandbox.model import Character, Place, World, WorldObject

# Cyrillic and Greek letters and digits that look like Latin letters or like each other, in either case.
_ALIKE = str.maketrans("аԁеһіїјкӏмноорсѕтухгвзбчαεικνορτυχβ01|", "adehiijklmhoopcstyxrb364aeiknoptyxboll")

DISTINCT = "choose one that is easy to tell apart."


def skeleton(text: str) -> str:
    """Return a key that is the same for names that look alike."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(c for c in folded if unicodedata.category(c)[0] in "LN" or c == "|") or folded
    return kept.translate(_ALIKE).replace("rn", "m").replace("vv", "w")


def name_faults(world: World) -> Iterator[str]:
    """Yield what is wrong with the names in a world, as sentences: empty ones, and those that look alike.

    Objects may have equal names, such as three coins, but not names that only look equal.
    """
    named: tuple[tuple[str, Sequence[Place | Character | WorldObject]], ...] = (
        ("place", world.places),
        ("character", world.characters),
        ("object", world.objects),
    )
    for kind, parts in named:
        yield from (f"the name of the {kind} {one.id!r} is empty; write one." for one in parts if not one.name.strip())
        for one, other in combinations(parts, 2):
            same = kind == "object" and one.name.casefold() == other.name.casefold()
            if not same and skeleton(one.name) == skeleton(other.name):
                yield f"the name {other.name!r} of the {kind} {other.id!r} looks like that of {one.id!r}; {DISTINCT}"
