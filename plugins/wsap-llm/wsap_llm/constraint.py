"""Whether an agent's replies are constrained to what is legal, and what is said where they can't be used."""

from __future__ import annotations

import logging
from collections.abc import Callable

from wsap_core.seams.model import Backend, Reply
from wsap_core.seams.model_errors import ConstraintError
from wsap_core.untrusted import single_line
from wsap_llm.options import LLMOptions, Profile

TOLERANCE = "Its replies are read with tolerance instead, and the summary says how many decisions that was."
ADVICE = "use a model that can be constrained, or leave --strict out"
ROOM = (
    "Allow longer replies (--agent-option max_tokens=N), give thinking more room (--model-option think_tokens=N, where "
    "the backend has it), or switch it off (--agent-option thinking=no)."
)


def cause_of(reply: Reply, reason: str) -> str:
    """Return why a reply could not be used, in a few words; `reason` where nothing but its text is to blame."""
    tokens = reply.usage.completion_tokens
    if reply.finish.reason == "content_filter":
        return "the model refused, or a content filter stopped its reply"
    if reply.text.strip():
        return f"the reply was cut off after {tokens} tokens" if reply.truncated else single_line(reason)[:200]
    if reply.thinking:
        return f"the model spent all {tokens} tokens of its reply on thinking"
    return f"the reply was empty after {tokens} tokens" if reply.truncated else "the reply was empty"


class ConstraintState:
    """Whether one agent's replies are to be constrained, and whether the backend has refused to in this session. What
    does not go as asked is told once each; to the log of warnings where `tell` is None."""

    def __init__(self, backend: Backend, options: LLMOptions, tell: Callable[[str], None] | None = None) -> None:
        self.reason = ""
        """What the backend said when it refused a constraint; empty if it never has."""
        self.ignored = False
        """Whether a complete reply broke the constraint that was sent with the request."""
        self._backend = backend
        self._options = options
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._inform = tell or logging.getLogger("wsap.llm").info
        self._told: set[str] = set()

    @property
    def wanted(self) -> bool:
        """Whether replies are to be constrained where the backend says that it can."""
        return self._options.constrain and not self.reason

    def check(self, can: bool) -> None:
        """Tell if the backend can't constrain replies in the style that is used, though they were to be.

        Raises ConstraintError if it can't or is not to, and strict play was asked for."""
        if self._options.strict and not self._options.constrain:
            raise ConstraintError("Strict play was asked for, and unconstrained replies (constrain=no); choose one.")
        if can:
            return
        can_not = f"{self._backend.model} can't be constrained to legal actions in this style"
        if self._options.strict:
            raise ConstraintError(f"{can_not}, and strict play was asked for; {ADVICE}.")
        if self._options.constrain:
            self._say(f"{can_not}. {TOLERANCE}")

    def asks(self, style: str, profile: Profile) -> None:
        """Tell how the model is asked, where that is not by JSON and all that there is to tell; the log of what goes as
        asked where nobody is told."""
        if (style, profile) != ("json", "full"):
            how = f"{self._backend.model} is asked in the style {style}, with the profile {profile}."
            self._say(how, self._inform)

    def refused(self, error: ConstraintError) -> None:
        """Take a refusal: nothing is constrained from now on, and that is told.

        Raises ConstraintError if strict play was asked for.
        """
        words = single_line(error).rstrip(". ")
        if self._options.strict:
            raise ConstraintError(f"{words}. Strict play was asked for; {ADVICE}.") from error
        self.reason = words or "refused"
        self._say(f"{words}. {TOLERANCE}")

    def unusable(self, reply: Reply, reason: str, *, bound: bool) -> str:
        """Take a reply that is not what was asked for, `bound` if the backend took a constraint with the request, and
        return the cause.

        Raises ConstraintError if strict play was asked for, and the backend does not keep to the constraint.
        """
        cause = cause_of(reply, reason)
        if not reply.text.strip() or reply.truncated:
            self._say(f"{self._backend.model}: {cause}. {ROOM}" if reply.truncated or reply.thinking else "")
        elif bound and reply.finish.reason != "content_filter":
            cause = "the server does not keep to the form that it is told to bind replies to"
            broken = f"{self._backend.model}: {cause}"
            if self._options.strict:
                raise ConstraintError(f"{broken}, and strict play was asked for; {ADVICE}.")
            self.ignored = True
            self._say(f"{broken}. {TOLERANCE}")
        return cause

    def _say(self, text: str, tell: Callable[[str], object] | None = None) -> None:
        if text and text not in self._told:
            self._told.add(text)
            (tell or self._tell)(text)
