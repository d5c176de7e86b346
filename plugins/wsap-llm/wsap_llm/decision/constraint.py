"""Whether an agent's replies are constrained to legal actions, and warnings about unusable replies."""

from __future__ import annotations

import logging
from collections.abc import Callable

from wsap_core.seams.model import Backend, Reply
from wsap_core.seams.model_errors import ConstraintError
from wsap_core.untrusted import single_line
from wsap_llm.options.llm import LLMOptions, Profile

TOLERANCE = "Its replies are parsed leniently instead; the summary counts these decisions."
ADVICE = "use a model that supports constraints, or omit --strict"
ROOM = (
    "Allow longer replies (--agent-option max_tokens=N) or more tokens for thinking (--model-option think_tokens=N, if "
    "the backend has it), or switch thinking off (--agent-option thinking=no)."
)


def cause_of(reply: Reply, reason: str) -> str:
    """Return why a reply could not be used; `reason` if only its text is at fault."""
    tokens = reply.usage.completion_tokens
    if reply.finish.reason == "content_filter":
        return "the model refused, or a content filter stopped its reply"
    if reply.finish.reason == "invalid":
        return "the server found that the model's reply breaks the form that was asked for"
    if reply.message.text().strip():
        return f"the reply was cut off after {tokens} tokens" if reply.truncated else single_line(reason)[:200]
    if reply.thinking:
        return f"the model spent all {tokens} tokens of its reply on thinking"
    return f"the reply was empty after {tokens} tokens" if reply.truncated else "the reply was empty"


class ConstraintState:
    """Whether one agent's replies are constrained, and whether the backend refused a constraint in this session. `tell`
    receives each warning once; the log by default."""

    def __init__(self, backend: Backend, options: LLMOptions, tell: Callable[[str], None] | None = None) -> None:
        self.reason = ""
        """The backend's message when it refused a constraint; empty if it has not."""
        self.ignored = False
        """Whether a complete reply violated its request's constraint."""
        self._backend = backend
        self._options = options
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._inform = tell or logging.getLogger("wsap.llm").info
        self._told: set[str] = set()

    @property
    def wanted(self) -> bool:
        """Whether replies are constrained if the backend can."""
        return self._options.constrain and not self.reason

    def check(self, can: bool) -> None:
        """Warn if the backend can't constrain replies in this style; raise ConstraintError instead for strict play."""
        if self._options.strict and not self._options.constrain:
            raise ConstraintError("The options strict and constrain=no contradict each other; choose one.")
        if can:
            return
        can_not = f"{self._backend.model} can't be constrained to legal actions in this style"
        if self._options.strict:
            raise ConstraintError(f"{can_not}, but strict play was requested; {ADVICE}.")
        if self._options.constrain:
            self._say(f"{can_not}. {TOLERANCE}")

    def asks(self, style: str, profile: Profile) -> None:
        """Report style and profile unless they are `json` and `full`."""
        if (style, profile) != ("json", "full"):
            how = f"{self._backend.model} is asked in the style {style}, with the profile {profile}."
            self._say(how, self._inform)

    def refused(self, error: ConstraintError) -> None:
        """Stop constraining replies, with a warning; raise ConstraintError instead for strict play."""
        words = single_line(error).rstrip(". ")
        if self._options.strict:
            raise ConstraintError(f"{words}. Strict play was requested; {ADVICE}.") from error
        self.reason = words or "refused"
        self._say(f"{words}. {TOLERANCE}")

    def unusable(self, reply: Reply, reason: str, *, bound: bool) -> str:
        """Warn about an unusable reply and return the cause; `bound` if the backend accepted a constraint for it.
        Raises ConstraintError for strict play if the reply violates the constraint."""
        cause = cause_of(reply, reason)
        if not reply.message.text().strip() or reply.truncated:
            self._say(f"{self._backend.model}: {cause}. {ROOM}" if reply.truncated or reply.thinking else "")
        elif bound and reply.finish.reason not in ("content_filter", "invalid"):
            cause = "the server did not enforce the constraint of the request"
            broken = f"{self._backend.model}: {cause}"
            if self._options.strict:
                raise ConstraintError(f"{broken}, but strict play was requested; {ADVICE}.")
            self.ignored = True
            self._say(f"{broken}. {TOLERANCE}")
        return cause

    def _say(self, text: str, tell: Callable[[str], object] | None = None) -> None:
        if text and text not in self._told:
            self._told.add(text)
            (tell or self._tell)(text)
