"""What of a session goes along with each request: the system message, and as many of the newest steps as fit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Backend, Message, Request
from wsap_core.seams.model_errors import ContextTooSmallError
from wsap_llm.tokens import estimate_message, estimate_request
from wsap_llm.window import HistoryTurn, Window

__all__ = ["Conversation"]


class Conversation:
    """Keeps to the model's context, and tells once if that leaves out steps that were to be shown.

    Args:
        backend: whose context it is.
        steps: about how many steps are sent along: from half to twice as many.
        pictures: how many of the newest of them keep their picture.
        tell: told, in a sentence and once, what was cut; the log of warnings for None.
    """

    def __init__(
        self, backend: Backend, *, steps: int, pictures: int = 0, tell: Callable[[str], None] | None = None
    ) -> None:
        self._backend = backend
        self._steps = steps
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._told = False
        self._window = Window(steps, pictures=pictures)
        self._opening = Message("system", "")

    @property
    def system(self) -> str:
        """The system message; empty before a session begins."""
        return self._opening.text()

    @property
    def turns(self) -> Sequence[HistoryTurn]:
        """The steps that go along, oldest first."""
        return self._window.turns

    @property
    def cut(self) -> int:
        """How many steps have been cut off so far."""
        return self._window.cut

    def begin(self, system: str) -> None:
        """Begin anew, with this system message."""
        self._opening = Message("system", system)  # the same each time: its encoding is kept with it
        self._window.clear()

    def add(self, turn: HistoryTurn) -> None:
        """Add a step at the end."""
        self._window.add(turn)

    def restore(self, turns: Sequence[HistoryTurn], cut: int = 0) -> None:
        """Become a conversation with these steps."""
        self._window.restore(turns, cut)

    def with_messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return everything that is sent: the system message, the steps, and these messages."""
        return (self._opening, *self._window.messages(), *messages)

    def fitted(self, request: Request, messages: Sequence[Message]) -> Request:
        """Return the request with so many steps that it and the longest reply fit into the model's context.

        Args:
            request: made of `with_messages(messages)`.
            messages: what has to be in it besides the system message.

        Raises:
            ContextTooSmallError: they don't fit even without any step.
        """
        context = self._backend.abilities.context
        if context is None:
            return request
        reserve = request.sampling.max_tokens or 0
        if estimate_request(request) + reserve <= context:
            return request
        needed = estimate_tokens(self._opening.text()) + estimate_tokens(request.prefill) + reserve + 16
        needed += sum(map(estimate_message, messages))
        if needed > context:
            raise ContextTooSmallError(
                f"{self._backend.model} has a context of {context} tokens; the system message, this observation and "
                f"{reserve} tokens for the reply need about {needed}. Give it more context (`wsap models` suggests "
                "how much), or allow shorter replies (--agent-option max_tokens=N)."
            )
        before = len(self._window.turns)
        self._window.fit(context - needed)
        self._say(context, before - len(self._window.turns))
        return replace(request, messages=self.with_messages(messages))

    def _say(self, context: int, cut: int) -> None:
        left = len(self._window.turns)
        if self._told or not cut or left >= self._steps:
            return  # as many as were asked for are still there
        self._told = True
        self._tell(
            f"{self._backend.model} has a context of {context} tokens, which is too little for {self._steps} steps of "
            f"history: older ones are cut from its prompt, and now it holds the newest {left}. Give it more context "
            "(`wsap models` suggests how much), or ask for less history (--agent-option window=N)."
        )
