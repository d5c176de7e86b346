"""What a person at the keyboard is asked: the actions there are, their keys, and a line to type in."""

from __future__ import annotations

import asyncio
import textwrap

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wsap_core.protocol import TOOL, Action, ActionSpace, Observation
from wsap_core.untrusted import single_line
from wsap_llm.reply.schema import legal_actions
from wsap_nexus.terminal.keymap import Line, by_action, keymap, typed_choice, why_not
from wsap_nexus.terminal.panels import flowing

ASIDE = frozenset({TOOL, "avatar", "meta", "message"})
"""Categories of actions that are named after the deeds: what is looked up, and what every world has."""
MOST_IMPOSSIBLE = 12
"""So many actions that are not possible now are named; of more, only how many they are."""


class Question:
    """One decision that a person is asked for."""

    def __init__(self, seat: str, observation: Observation, space: ActionSpace) -> None:
        self.seat = seat
        self.observation = observation
        self.answer: asyncio.Future[Action] = asyncio.get_running_loop().create_future()
        """Resolved with the action that was chosen."""
        self.line = Line()
        self.reason = ""
        """Why the last try was not taken."""
        self._space = space
        self._keys = keymap(space)
        self._open = ActionSpace(legal_actions(space, observation))
        """What is possible now, with what each of it can be done to."""

    def press(self, key: str) -> bool:
        """Take a key; return whether it was meant for this question."""
        if self.line.open:
            typed = self.line.press(key, self._open if key == "tab" else self._space)
            if typed is not None:
                action, self.reason = typed_choice(typed, self._space, self.observation)
                if action is not None:
                    self._choose(action)
                if self.reason and typed.strip():  # to be mended, not typed anew
                    self.line.begin(typed)
            return True
        if key in (":", "/"):
            self.line.begin()
            self.reason = ""
            return True
        name = self._keys.get(key)
        if name is None:
            return False
        self._choose(Action(name))
        return True

    def _choose(self, action: Action) -> None:
        self.reason = why_not(action, self.observation)
        if not self.reason and not self.answer.done():
            self.answer.set_result(action)

    def lines(self, width: int) -> list[Text]:
        """Return the question, to be drawn in that width: what is typed, what can be done, and looked up."""
        signs, phrases = by_action(self._keys), self.observation.phrases()
        deeds: list[Text] = []
        tools: list[Text] = []
        impossible: list[Text] = []
        for action in self._space.actions:
            can = not why_not(Action(action.name), self.observation)
            cell = Text(no_wrap=True, overflow="ellipsis")
            cell.append(signs.get(action.name, ":"), "bold yellow" if can else "dim")
            told = phrases.get(action.name) if can and action.name in signs else None  # what is typed has its name
            cell.append(f" {single_line(told or action.name)}", "" if can else "dim strike")
            if not action.unlisted or (can and not action.is_tool):
                (impossible if not can else tools if action.category in ASIDE else deeds).append(cell)
        if len(impossible) > MOST_IMPOSSIBLE:
            impossible = [Text(f"{len(impossible)} more are not possible now", "dim")]
        rows = [line for cells in (deeds, tools, impossible) for line in flowing(cells, width, "   ")]
        return [*self._first_lines(width), *rows]

    def _first_lines(self, width: int) -> list[Text]:
        reason = [Text(line, "bold red", no_wrap=True) for line in textwrap.wrap(single_line(self.reason), width)]
        if not self.line.open:
            ask = "Press a key, or : to type an action."
            return reason or [Text(ask, "dim", no_wrap=True, overflow="ellipsis")]
        hint = "  Tab completes, Esc leaves"
        room = max(10, width - 4)
        before, after = self.line.text[: self.line.at], self.line.text[self.line.at :]
        room_after = min(cell_len(after), room // 3)  # most of the room is for what stands before the cursor
        if cell_len(before) > room - room_after:
            before = "…" + set_cell_size(before[::-1], room - room_after - 1)[::-1]
        if cell_len(after) > room - cell_len(before):
            after = set_cell_size(after, room - cell_len(before) - 1) + "…"
        line = Text.assemble((": ", "bold yellow"), (before, "bold"), ("▏", "blink"), (after, "bold"), no_wrap=True)
        return [*reason, line.append(hint, "dim") if cell_len(line.plain + hint) <= width else line]
