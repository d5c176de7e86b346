"""The part of a conversation that is sent: a stable prefix, trimmed in chunks so that it stays one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from wsap_core.seams.model import ImagePart, Message
from wsap_llm.pictures import with_picture
from wsap_llm.tokens import estimate_message


@dataclass(frozen=True)
class HistoryTurn:
    """One step of the conversation: what was shown and what was answered."""

    user: str
    assistant: str
    picture: ImagePart | None = None
    """What was shown beside the text, as long as it is kept."""

    @cached_property
    def messages(self) -> tuple[Message, Message]:
        """The turn as messages; the same objects each time, whose encoding is kept with them."""
        shown = Message("user", with_picture(self.user, self.picture))
        return shown, Message("assistant", self.assistant)

    def to_json(self) -> list[Any]:
        """Return the turn as data, for a snapshot (Any: JSON)."""
        seen = self.picture
        return [self.user, self.assistant, *([] if seen is None else [[seen.base64, seen.media_type, seen.alt]])]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> HistoryTurn:
        """Return the turn that a snapshot holds.

        Raises:
            ValueError: it is none.
        """
        user, assistant, *more = data
        return cls(str(user), str(assistant), ImagePart(*map(str, more[0])) if more else None)

    @cached_property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return sum(map(estimate_message, self.messages))


class Window:
    """Keeps the last turns: about `steps` of them, from half to twice as many.

    Turns are only ever added at the end, until twice as many are there as are wanted; then all but
    the newest half of what is wanted go at once. Between two such cuts every request begins with
    the one before, which providers and local servers reuse: with 16 steps, 24 of 25 requests do.

    Pictures are dear, so only the newest turns keep theirs. A turn that loses its picture stays the
    same up to the picture, which is its end; what comes after it has to be computed anew.

    Args:
        steps: about how many turns to keep; 0 for none.
        tokens: about how many tokens the turns may take at most; None for no limit.
        pictures: how many of the newest turns keep their picture.
    """

    def __init__(self, steps: int = 16, *, tokens: int | None = None, pictures: int = 0) -> None:
        self._steps = steps
        self._tokens = tokens
        self._pictures = pictures
        self._turns: list[HistoryTurn] = []
        self._size = 0
        self.cut = 0
        """How many turns have been cut off so far."""

    @property
    def turns(self) -> Sequence[HistoryTurn]:
        """The turns that are kept, oldest first."""
        return tuple(self._turns)

    def add(self, turn: HistoryTurn) -> None:
        """Add a turn at the end, and cut old ones off if there are too many."""
        if not self._steps:
            return
        self._turns.append(turn)
        self._size += turn.tokens
        self._fade(len(self._turns) - 1 - self._pictures)
        if len(self._turns) > 2 * self._steps:
            self._drop(len(self._turns) - (self._steps + 1) // 2)
        if self._tokens is not None and self._size > self._tokens:
            # Down to half of what fits, so that the next cut is some turns away.
            self._drop_to(self._tokens // 2)

    def fit(self, tokens: int) -> None:
        """Cut turns off until the rest takes at most about so many tokens."""
        if self._size > tokens:
            self._drop_to(tokens // 2)

    def messages(self) -> list[Message]:
        """Return the turns as messages."""
        return [message for turn in self._turns for message in turn.messages]

    def clear(self) -> None:
        """Forget all turns."""
        self._turns.clear()
        self._size = 0

    def restore(self, turns: Sequence[HistoryTurn], cut: int = 0) -> None:
        """Become a window with these turns."""
        self._turns = list(turns)
        self._size = sum(turn.tokens for turn in self._turns)
        self.cut = cut

    def _fade(self, at: int) -> None:
        """Take the picture out of the turn at that place, if there are both."""
        if at >= 0 and (turn := self._turns[at]).picture is not None:
            self._turns[at] = plain = replace(turn, picture=None)
            self._size -= turn.tokens - plain.tokens

    def _drop(self, count: int) -> None:
        self._size -= sum(turn.tokens for turn in self._turns[:count])
        del self._turns[:count]
        self.cut += count

    def _drop_to(self, tokens: int) -> None:
        count = 0
        size = self._size
        while count < len(self._turns) and size > tokens:
            size -= self._turns[count].tokens
            count += 1
        self._drop(count)
