"""Detecting tool calls and the end of a turn in tags while the model is still writing.

A scanner is fed only what the model writes; text from players, tools or prompts never
goes through it, so that only the model's own tags count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wsap_core.protocol import Action, ActionDef
from wsap_llm.reply.candidates import ToolCall
from wsap_llm.reply.tags import TagTurn


@dataclass(frozen=True)
class ToolTag:
    """A tool was called; generation stops here."""

    call: ToolCall
    end: int
    """End of the tag in the text that was fed; discard what follows."""
    thought: str | None = field(default=None, compare=False)
    """The leg's thinking before it."""


@dataclass(frozen=True)
class FinalTag:
    """The turn has ended in an action."""

    action: Action
    """With the thinking as its reasoning."""
    end: int
    repaired: bool = False
    """True if the thinking was never closed before it."""


@dataclass(frozen=True)
class TagProblem:
    """A tag is malformed, or the text ended without a final action."""

    reason: str
    """One sentence for the model that is asked again."""
    end: int


TagEvent = ToolTag | FinalTag | TagProblem
"""What a scanner reports, once."""

_TAG = re.compile(r"<\s{0,4}(?P<close>/?)\s{0,4}(?P<name>[A-Za-z_][\w.\-]{0,62})\s{0,4}(?P<empty>/?)\s{0,4}>")
# What may still become a tag when more text comes.
_BEGUN = re.compile(r"<\s{0,4}/?\s{0,4}(?:[A-Za-z_][\w.\-]{0,62}(?:\s{0,4}/?\s{0,4}|\s{1,4}[\w.\-]{0,40}\s{0,4}))?\Z")
_WITH_ATTRIBUTES = re.compile(r"<\s{0,4}(?P<name>[A-Za-z_][\w.\-]{0,62})\s{1,4}[\w.\-]{1,40}\s{0,4}=")
_THINKING = ("thinking", "think")


@dataclass
class _Open:
    definition: ActionDef
    at: int
    """Where its content begins."""
    start: int


class TagScanner:
    """Reads a leg of a turn as it comes, in chunks of any size."""

    def __init__(self, turn: TagTurn, *, inside_thinking: bool = False, calls_left: int | None = None) -> None:
        """Begin a leg, inside the thinking for a continuation or where `<thinking>` was the prefill; as many calls are
        left as the turn's limit if `calls_left` is None."""
        self._turn = turn
        self._calls_left = turn.limits.calls if calls_left is None else calls_left
        self._thinking = inside_thinking
        self._text = ""
        self._at = 0
        self._open: _Open | None = None
        self._early: list[FinalTag] = []
        self._remark = ""
        self._event: TagEvent | None = None

    @property
    def text(self) -> str:
        """The text fed so far, up to the end of the reported tag."""
        return self._text if self._event is None else self._text[: self._event.end]

    def feed(self, chunk: str) -> TagEvent | None:
        """Add the next piece of the model's text, and return the event it completes, if any.

        Feed a stop text that the backend removed from the reply as well.
        """
        if self._event is not None:
            return None
        self._text += chunk
        self._event = self._scan()
        return self._event

    def finish(self) -> TagEvent:
        """Return the result of the leg; no more text will come."""
        if self._event is None:
            self._event = self._scan() or self._verdict()
        return self._event

    def _scan(self) -> TagEvent | None:
        while (start := self._text.find("<", self._at)) >= 0:
            tag = _TAG.match(self._text, start)
            if tag is None:
                if _BEGUN.match(self._text, start):
                    # It may be completed by the next chunk.
                    self._at = start
                    return self._too_long(start)
                self._note_attributes(start)
                self._at = start + 1
                continue
            self._at = tag.end()
            if (event := self._tag(tag)) is not None:
                return event
        self._at = len(self._text)
        return self._too_long(self._at)

    def _too_long(self, end: int) -> TagEvent | None:
        if self._open is None:
            return None
        name, most = self._open.definition.name, self._turn.longest(self._open.definition)
        # Room for spaces around it, and for an end that has only begun.
        if end - self._open.at <= most + 100:
            return None
        return TagProblem(f"<{name}> was not closed within {most} characters.", end)

    def _tag(self, tag: re.Match[str]) -> TagEvent | None:
        name = tag["name"].lower()
        definition = self._turn.find(name)
        if self._open is not None:
            return self._inside(tag, definition, name)
        if name in _THINKING:
            self._thinking = not tag["close"]
            return None
        if definition is None:
            return None
        if tag["close"]:
            self._remark = f"</{definition.name}> closes a tag that was not opened."
            return None
        if tag["empty"]:
            return self._complete(definition, "", tag.start(), tag.end())
        self._open = _Open(definition, tag.end(), tag.start())
        return None

    def _inside(self, tag: re.Match[str], definition: ActionDef | None, name: str) -> TagEvent | None:
        """A tag within another: its end, a nested one, or text that looks like one."""
        assert self._open is not None
        if definition is self._open.definition and tag["close"]:
            begun, self._open = self._open, None
            return self._complete(begun.definition, self._text[begun.at : tag.start()], begun.start, tag.end())
        if definition is None and name not in (*_THINKING, "observation"):
            return None
        return TagProblem(
            f"<{self._open.definition.name}> has another tag, <{tag['close']}{name}>, inside it.", tag.end()
        )

    def _complete(self, definition: ActionDef, content: str, start: int, end: int) -> TagEvent | None:
        parameters, reason = self._turn.read(definition, content)
        if reason:
            return None if self._only_named(definition, content) else TagProblem(reason, end)
        if definition.name in self._turn.tools:
            if self._calls_left <= 0:
                return TagProblem("No tool calls are left in this turn; end it with a final action.", end)
            return ToolTag(ToolCall(definition.name, parameters), end, self._thought(start))
        final = FinalTag(Action(definition.name, parameters, self._thought(start)), end)
        if not self._thinking:
            return final
        # In the middle of thinking it may only be spoken of; at the very end it is meant.
        self._early.append(FinalTag(final.action, end, repaired=True))
        return None

    def _only_named(self, definition: ActionDef, content: str) -> bool:
        """Whether thinking speaks of a tag without using it: "I could use <check_will></check_will>"."""
        return self._thinking and not content.strip() and any(not p.optional for p in definition.parameters)

    def _thought(self, end: int) -> str | None:
        thought = re.sub(r"<\s{0,3}/?\s{0,3}think(?:ing)?\s{0,3}>", "", self._text[:end], flags=re.IGNORECASE).strip()
        return thought or None

    def _note_attributes(self, start: int) -> None:
        match = _WITH_ATTRIBUTES.match(self._text, start)
        definition = self._turn.find(match["name"]) if match else None
        if definition is not None:
            self._remark = f"<{definition.name}> takes no attributes; write what it needs between the tag and its end."

    def _verdict(self) -> TagEvent:
        end = len(self._text)
        if self._open is not None:
            return TagProblem(f"<{self._open.definition.name}> was not closed.", end)
        if len(self._early) == 1 and not self._text[self._early[0].end :].strip():
            return self._early[0]
        finals = " or ".join(f"<{name}>" for name in self._turn.finals)
        if self._remark:
            return TagProblem(self._remark, end)
        if self._thinking:
            return TagProblem(f"The turn ended inside <thinking>; close it and end with one of {finals}.", end)
        return TagProblem(f"The turn has no final action; end it with one of {finals}.", end)
