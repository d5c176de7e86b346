"""Player names: distinct and unambiguous."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

from wsap_core.errors import ConfigError
from wsap_core.untrusted import sanitize
from wsap_tossim.engine.data.model import Faction, Verb
from wsap_tossim.engine.roles.listed import ROLES

__all__ = ["checked_names", "default_names"]

LONGEST = 30
RESERVED = (
    *("system", "assistant", "user", "tool", "observation", "thinking", "human", "developer", "moderator"),
    *("everyone", "everybody", "somebody", "nobody", "anybody", "all", "none", "you", "me", "jail", "dead", "seance"),
    *(faction.value for faction in Faction),
    *ROLES,
    *(verb.value for verb in Verb),
)
"""Names that could be confused with other words of the game, also with "the" before them."""
# lower-case letters of other scripts that look like Latin ones and that NFKC does not unify
_LOOK_ALIKE = str.maketrans(
    {
        **dict(zip("аеорсухіјѕԁһӏԛԝвмнткг", "aeopcyxijsdhlqwbmhtkr", strict=True)),
        **dict(zip("αβγδεικνορτυχ", "abydeikvoptux", strict=True)),
        **dict(zip("01|!", "olil", strict=True)),
        "ı": "i",
        "ł": "l",
        "ø": "o",
    }
)


def default_names(count: int) -> tuple[str, ...]:
    """Return "Player 1", "Player 2" and so on."""
    return tuple(f"Player {i + 1}" for i in range(count))


def checked_names(names: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the valid names, stripped, in seat order.

    Raises:
        ConfigError: the number of names is wrong, or one is empty, too long, reserved, not plain text, or looks like
            another.
    """
    if len(names) != count:
        raise ConfigError(f"There are {len(names)} names for {count} players; give one for each.")
    seen: dict[str, str] = {}
    cleaned = []
    for name in names:
        plain = name.strip()
        shown = sanitize(plain, 4 * LONGEST)
        if not plain or not any(c.isalnum() for c in plain):
            raise ConfigError(f"The name {shown!r} has no letters or digits in it.")
        if len(plain) > LONGEST:
            raise ConfigError(f"The name {shown[:LONGEST]!r}... has {len(plain)} characters; at most {LONGEST}.")
        if plain != shown or not all(map(_plain, plain)):
            raise ConfigError(
                f"The name {shown!r} has characters that are not plain text; use letters, digits, spaces and -_.'"
            )
        if plain.casefold().rstrip("0123456789 ") in ("day", "night") or _shape(plain) in _reserved():
            raise ConfigError(f"The name {shown!r} stands for something else in the game; choose another.")
        shape = _shape(plain)
        if shape in seen:
            raise ConfigError(f"The names {seen[shape]!r} and {shown!r} look alike; choose another for one of them.")
        seen[shape] = shown
        cleaned.append(plain)
    return tuple(cleaned)


def _plain(character: str) -> bool:
    """Return whether a character is allowed in names: letters, digits, combining marks, and a few more."""
    return character.isalnum() or character in " -_.'" or unicodedata.category(character)[0] == "M"


@cache
def _reserved() -> frozenset[str]:
    return frozenset(_shape(f"{the}{word}") for word in RESERVED for the in ("", "the ", "a ", "an "))


def _shape(name: str) -> str:
    """Return a name without case, accents and spaces, with look-alike letters unified."""
    digits = name.rstrip("0123456789")
    number = name[len(digits) :]  # numbers at the end, as in "Player 1" and "Player 10", stay distinct
    text = unicodedata.normalize("NFKD", digits).casefold()
    text = "".join(c for c in text if c.isalnum() or c in "|!").translate(_LOOK_ALIKE)
    return text.replace("i", "l").replace("rn", "m").replace("vv", "w") + number
