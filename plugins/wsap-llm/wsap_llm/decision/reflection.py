"""Reflection: when an agent asks its model for lessons, and how the reply is stored."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wsap_core.protocol import ActionResult, HistoryEntry
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.agent import ReflectionInfo
from wsap_core.seams.memory import LESSON, AgentMemory, Browsable
from wsap_core.seams.model import Message
from wsap_core.untrusted import sanitize
from wsap_llm.decision.asking import Asker
from wsap_llm.decision.turn import outcome_of, quoted
from wsap_llm.memory.cells import describe
from wsap_llm.text.thinking import split_thinking

DEATH = "death"
"""The event type of a death."""
LEAST = 5
"""Minimum number of decisions between reflections on an end or a death, to limit requests for very short episodes."""
LINE = 200
"""Maximum length of a lesson in characters."""
LATELY = 16
"""Maximum number of steps in the prompt beside those of the conversation."""
KNOWN = 8
"""Maximum number of known lessons in the prompt."""
_MARK = re.compile(r"^\s*(?:[-*•>]+\s*)*(?:\d{1,2}[.):]\s+)?")
_NOTHING = frozenset({
    *("nothing", "none", "n/a", "nothing new", "no new lessons", "no lessons"),
    *("ничего", "ничего нового", "нет", "новых уроков нет", "нет новых уроков"),
})  # fmt: skip


@dataclass
class Reflector:
    """Asks for lessons at the end of an episode, on a death, and every `reflect_every` decisions. Each line of the
    reply, up to a maximum, is stored in the memory as a note of the kind "lesson" with game and step."""

    memory: AgentMemory
    asker: Asker
    _since: int = field(default=0, init=False)
    _ended: int = field(default=0, init=False)
    _death: str = field(default="", init=False)
    _last: ActionResult | None = field(default=None, init=False)
    _lived: list[tuple[int | None, str]] = field(default_factory=list, init=False)

    async def after(self, entry: HistoryEntry, result: ActionResult) -> ReflectionInfo | None:
        """Count a decision by its result, and reflect if it is time; None if it is not."""
        self._lived = [*self._lived, (entry.step, describe(entry))][-LATELY:]
        self._since += 1
        self._ended += 1
        self._last = result
        died = self._died(result)
        if (result.done or died) and self._ended >= LEAST:
            self._ended = 0
            return await self._look_back("died" if died else "over")
        if 0 < self.asker.options.reflect_every <= self._since:
            return await self._look_back("")
        return None

    async def conclude(self) -> ReflectionInfo | None:
        """Reflect at the end of play; None after too few decisions."""
        return await self._look_back("left") if self._since >= LEAST else None

    def state(self) -> list[JsonValue]:
        """Return the state as JSON-ready data."""
        return [self._since, self._ended, self._death, [list(step) for step in self._lived]]

    def set_state(self, state: object) -> None:
        """Continue from a state; raise ValueError if it is invalid."""
        if not isinstance(state, list) or [type(item) for item in state[:3]] != [int, int, str]:
            raise ValueError("the state of an agent's reflection is two numbers and a text")
        self._since, self._ended, self._death = state[:3]
        lived = state[3] if len(state) > 3 else []
        self._lived = [(None if step is None else int(step), str(line)) for step, line in lived][-LATELY:]
        self._last = None

    async def _look_back(self, why: str) -> ReflectionInfo:
        result, prompts, options = self._last, self.asker.prompts, self.asker.options
        seen, explanation = quoted(result.observation, self.asker.generator) if result is not None else (None, "")
        text = prompts.render(
            "reflect",
            observation=seen.to_text() if seen is not None else "",
            explanation=explanation,
            outcome=outcome_of(result, LINE, prompts.words) if result is not None else "",
            why=why,
            lately=self._lately(),
            lessons=self._known(),
            most=options.lessons,
        )
        reply = await self.asker.ask("reflect", [Message("user", text)])
        lessons = read_lines(reply.text, options.lessons)
        step = result.observation.step if result is not None else None
        for line in lessons:
            self.memory.note(line, kind=LESSON, world=options.game_name, step=step)
        self._since, self._lived = 0, []
        return ReflectionInfo(lessons)

    def _lately(self) -> list[str]:
        """Return the steps since the last time, except those that stand in the conversation and the one just told."""
        words, shown = self.asker.prompts.words, self.asker.conversation.steps_shown
        told = self._lived[:-1] if self._last is not None else self._lived
        return [sanitize(words.say(line), LINE) for step, line in told if step not in shown]

    def _known(self) -> list[str]:
        if not isinstance(self.memory, Browsable):
            return []
        return [sanitize(found.text, 2 * LINE) for found in self.memory.browse(LESSON, most=KNOWN)]

    def _died(self, result: ActionResult) -> bool:
        """Return whether a death is reported for the first time; games may report an event for several steps."""
        told = [e for e in result.observation.recent_events if e.type == DEATH]
        if not told:
            return False
        event = told[-1]
        mark = f"{event.step if event.step is not None else ''} {event.description}"[:300]
        known, self._death = self._death, mark
        return mark != known


def read_lines(text: str, most: int, limit: int = LINE) -> tuple[str, ...]:
    """Return the distinct meaningful lines of a model's reply, sanitized and cut to `limit` characters. Thinking, list
    marks, fences, headings, JSON, tags and words like "nothing" are removed."""
    kept: list[str] = []
    for line in split_thinking(text).said.splitlines():
        bare = _MARK.sub("", line).strip(" *\t\r")
        plain = bare.rstrip(".!").lower()
        if not bare or plain in _NOTHING or bare.endswith(":") or bare[0] in "{}[]<`#" or _is_json(bare):
            continue
        clean = " ".join(sanitize(bare, limit).split())
        if clean and clean not in kept:
            kept.append(clean)
    return tuple(kept[:most])


def _is_json(line: str) -> bool:
    # A line within an object of several lines.
    return line.startswith('"') and ('":' in line or line.endswith(('",', '"}')))
