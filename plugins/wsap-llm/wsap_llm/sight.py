"""What an agent sees: whether it looks at all, and what is said where there is nothing to see."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from wsap_core.errors import UsageError
from wsap_core.seams.agent import Look
from wsap_core.seams.model import Backend, ImagePart
from wsap_core.untrusted import one_line
from wsap_llm.pictures import picture_of

__all__ = ["Sight", "Wishes"]


class Wishes(Protocol):
    """What was asked for."""

    @property
    def game_name(self) -> str:
        """The world, for messages."""
        ...

    @property
    def pictures(self) -> int:
        """How many of the newest pictures the model is shown."""
        ...

    @property
    def strict(self) -> bool:
        """Refuse to play where there are none."""
        ...


class Sight:
    """One agent's wish for pictures, and what it sees.

    Args:
        backend: who is to see them.
        wishes: what was asked for.
        tell: told, in a sentence and once, that the world shows none; the log of warnings for None.
    """

    def __init__(self, backend: Backend, wishes: Wishes, tell: Callable[[str], None] | None = None) -> None:
        self._backend = backend
        self._wishes = wishes
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self.eyes: Look | None = None
        """Gives what is drawn now; None where nobody lets the agent see."""
        self._looked = False

    @property
    def wanted(self) -> bool:
        """Whether there is anything to draw pictures for."""
        return self._wishes.pictures > 0

    def check(self) -> None:
        """Look at what the backend says it can do, before a session begins.

        Raises:
            UsageError: pictures were asked for, and the model can't see.
        """
        if self.wanted and self._backend.abilities.images is False:
            raise UsageError(
                f"{self._backend.model} can't see pictures; leave --pictures out, or take a model that can: "
                "`wsap models` says which."
            )

    async def look(self) -> ImagePart | None:
        """Return the picture of this moment; None where there is none, or none was asked for.

        Raises:
            UsageError: the world shows no picture at first, and strict play was asked for.
        """
        if not self.wanted:
            return None
        picture = picture_of(await self.eyes()) if self.eyes is not None else None
        if picture is None and not self._looked:
            shows = f"{one_line(self._wishes.game_name)} shows no pictures"
            if self._wishes.strict:
                raise UsageError(f"{shows}, and strict play was asked for; leave --pictures or --strict out.")
            self._tell(f"{shows}, so the model plays by the text alone.")
        self._looked = True
        return picture
