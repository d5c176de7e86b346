"""All roles, as data: the thirty-three of the classic game, and the Citizen of teaching set-ups."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from wsap_core.errors import ConfigError
from wsap_tossim.engine.data.model import Role
from wsap_tossim.engine.roles.mafia import MAFIA_ROLES
from wsap_tossim.engine.roles.neutral import NEUTRAL_ROLES
from wsap_tossim.engine.roles.town import TOWN_ROLES

__all__ = ["ROLES", "role_named"]

ROLES: Mapping[str, Role] = {role.name: role for role in (*TOWN_ROLES, *MAFIA_ROLES, *NEUTRAL_ROLES)}
"""Every role by name: Town, Mafia, neutral."""
_BY_WORD = {name.casefold().replace(" ", ""): role for name, role in ROLES.items()}


def role_named(text: str) -> Role:
    """Return a role by its name, ignoring case, spaces, hyphens and underscores.

    Raises:
        ConfigError: there is no such role; the message suggests a similar one.
    """
    word = "".join(letter for letter in text.casefold() if letter not in " -_\t\n")
    role = _BY_WORD.get(word)
    if role is not None:
        return role
    close = difflib.get_close_matches(word[:60], list(_BY_WORD), n=1, cutoff=0.6)
    guess = f"did you mean {_BY_WORD[close[0]].name}?" if close else f"the roles are: {', '.join(ROLES)}."
    raise ConfigError(f"There is no role {text.strip()[:60]!r}; {guess}")
