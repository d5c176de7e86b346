"""Whether an agent's replies are constrained to what is legal, and what is said where they can't be."""

from __future__ import annotations

import logging
from collections.abc import Callable

from wsap_core.seams.model import Backend
from wsap_core.seams.model_errors import ConstraintError
from wsap_core.untrusted import single_line
from wsap_llm.options import LLMOptions
from wsap_llm.styles import Style

TOLERANCE = "Its replies are read with tolerance instead, and the summary says how many decisions that was."
ADVICE = "use a model that can be constrained, or leave --strict out"


class ConstraintState:
    """Whether one agent's replies are to be constrained, and whether the backend has refused to in this session. That
    they can't be is told once; to the log of warnings where `tell` is None."""

    def __init__(
        self, backend: Backend, style: Style, options: LLMOptions, tell: Callable[[str], None] | None = None
    ) -> None:
        self.reason = ""
        """What the backend said when it refused a constraint; empty if it never has."""
        self._backend = backend
        self._style = style
        self._options = options
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._told = False

    @property
    def wanted(self) -> bool:
        """Whether replies are to be constrained where the backend says that it can."""
        return self._options.constrain and not self.reason

    def check(self) -> None:
        """Check what the backend says it can do; tell if it can't constrain replies, though they were to be. Raises
        ConstraintError if it can't or is not to, and strict play was asked for."""
        if self._options.strict and not self._options.constrain:
            raise ConstraintError("Strict play was asked for, and unconstrained replies (constrain=no); choose one.")
        if self._style.constrains(self._backend.abilities):
            return
        can_not = f"{self._backend.model} can't be constrained to legal actions in this style"
        if self._options.strict:
            raise ConstraintError(f"{can_not}, and strict play was asked for; {ADVICE}.")
        if self._options.constrain:
            self._say(f"{can_not}. {TOLERANCE}")

    def refused(self, error: ConstraintError) -> None:
        """Take a refusal: nothing is constrained from now on, and that is told.

        Raises ConstraintError if strict play was asked for.
        """
        words = single_line(error).rstrip(". ")
        if self._options.strict:
            raise ConstraintError(f"{words}. Strict play was asked for; {ADVICE}.") from error
        self.reason = words
        self._say(f"{words}. {TOLERANCE}")

    def _say(self, text: str) -> None:
        if not self._told:
            self._told = True
            self._tell(text)
