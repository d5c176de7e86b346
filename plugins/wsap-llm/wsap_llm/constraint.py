"""Whether an agent's replies are bound to what is legal, and what is said where they can't be."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from wsap_core.seams.model import Abilities, Backend
from wsap_core.seams.model_errors import ConstraintError
from wsap_core.untrusted import one_line

__all__ = ["Binds", "ConstraintState", "Wishes"]

TOLERANCE = "Its replies are read with tolerance instead, and the summary says how many decisions that was."
ADVICE = "use a model that can be bound, or leave --strict out"


class Binds(Protocol):
    """A style, as far as it can tell whether a backend binds its replies."""

    def constrains(self, abilities: Abilities) -> bool:
        """Return whether a backend can bind replies to what is legal in this style."""
        ...


class Wishes(Protocol):
    """What was asked for."""

    @property
    def constrain(self) -> bool:
        """Bind replies where the backend can."""
        ...

    @property
    def strict(self) -> bool:
        """Refuse to play where they can't be bound."""
        ...


class ConstraintState:
    """One agent's wish to have its replies bound, and what has come of it in this session.

    Args:
        backend: who is asked.
        style: how it is asked.
        wishes: what was asked for.
        tell: told, in a sentence and once, that replies can't be bound; the log of warnings for None.
    """

    def __init__(
        self, backend: Backend, style: Binds, wishes: Wishes, tell: Callable[[str], None] | None = None
    ) -> None:
        self.reason = ""
        """What the backend said when it refused a constraint; empty if it never has."""
        self._backend = backend
        self._style = style
        self._wishes = wishes
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._told = False

    @property
    def wanted(self) -> bool:
        """Whether replies are to be bound where the backend says that it can."""
        return self._wishes.constrain and not self.reason

    def check(self) -> None:
        """Look at what the backend says it can do; tell if it can't bind replies, though they were to be.

        Raises:
            ConstraintError: it can't or is not to, and strict play was asked for.
        """
        if self._wishes.strict and not self._wishes.constrain:
            raise ConstraintError("Strict play was asked for, and replies not to be bound (constrain=no); choose one.")
        if self._style.constrains(self._backend.abilities):
            return
        can_not = f"{self._backend.model} can't be bound to legal actions in this style"
        if self._wishes.strict:
            raise ConstraintError(f"{can_not}, and strict play was asked for; {ADVICE}.")
        if self._wishes.constrain:
            self._say(f"{can_not}. {TOLERANCE}")

    def refused(self, error: ConstraintError) -> None:
        """Take a refusal: nothing is bound from now on, and that is told.

        Raises:
            ConstraintError: strict play was asked for.
        """
        words = one_line(error).rstrip(". ")
        if self._wishes.strict:
            raise ConstraintError(f"{words}. Strict play was asked for; {ADVICE}.") from error
        self.reason = words
        self._say(f"{words}. {TOLERANCE}")

    def _say(self, text: str) -> None:
        if not self._told:
            self._told = True
            self._tell(text)
