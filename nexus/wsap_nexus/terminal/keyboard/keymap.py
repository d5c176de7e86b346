"""The decision of a person who plays: its keys (arrows for moves, letters for other actions) and typed actions."""

from __future__ import annotations

import asyncio
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wsap_core.protocol import TOOL, Action, ActionSpace, Observation
from wsap_core.protocol.availability import choices_of
from wsap_core.untrusted import single_line
from wsap_llm.reply.schema import legal_actions
from wsap_llm.reply.typed import in_order, meant, named, typed_action
from wsap_nexus.terminal.panels import flowing

RESERVED = frozenset("qm?:/\t")
"""Keys of the view itself."""

TYPED = frozenset({"jack_out"})
"""Actions without a key, to prevent mistakes: leaving a world."""

LONGEST_LINE = 2000
"""Maximum number of typed characters: a will, or a page of a notebook."""

KEYS = (
    ("space", "pause or continue"),
    ("s or →", "one step, while paused"),
    ("+ and -", "faster and slower"),
    ("f", "full speed, and back"),
    ("m", "switch between map and picture"),
    ("Tab", "the next seat, if there are several"),
    ("q", "stop; the run can be resumed"),
    ("?", "this help"),
)

KEYS_OF_PLAYERS = (
    (":", "type an action: its name, then its parameters in order"),
    ("Tab", "while typing: complete, and cycle through the possible actions"),
    ("arrows", "while typing: move the cursor; Home and End, too"),
    ("Esc", "while typing: cancel"),
    ("PgUp, PgDn", "scroll the result of the last action"),
    ("a letter", "the action marked with this letter"),
    ("m", "switch between map and picture"),
    ("q", "stop; the run can be resumed"),
    ("?", "this help"),
)
"""The keys of the live view for people who play."""

LINE_WATCHING = "space pause  s step  +/- pace  f full speed  m map/frame  ? help  q stop"
LINE_ASKED = "press an action's key  : type one  m map/frame  ? help  q stop"
LINE_WAITING = "? help  q stop"

_ARROWS = {
    "up": ("move_up", "up", "move_north", "north", "go_north", "forward", "move_forward"),
    "down": ("move_down", "down", "move_south", "south", "go_south", "back", "move_back"),
    "left": ("move_left", "left", "move_west", "west", "go_west", "turn_left"),
    "right": ("move_right", "right", "move_east", "east", "go_east", "turn_right"),
    "space": ("do", "interact", "use", "act", "attack"),
    "z": ("sleep", "rest"),
    ".": ("noop", "wait", "pass", "stay"),
}
_SPARE = "123456789abcdefghijklnoprstuvwxyzABCDEFGHIJKLMNOPRSTUVWXYZ"


def keymap(space: ActionSpace) -> dict[str, str]:
    """Return key -> action for every action without required parameters, except `TYPED`.

    Moves are on the arrows, interaction on space, sleep on z, waiting on the full stop; the others get an
    initial of their name, or the next free digit or letter.
    """
    free = [a.name for a in space.actions if a.name not in TYPED and all(p.optional for p in a.parameters)]
    keys: dict[str, str] = {}
    for key, names in _ARROWS.items():
        name = next((n for n in names if n in free), None)
        if name is not None:
            keys[key] = name
    for name in free:
        if name in keys.values():
            continue
        words = [w for w in reversed(name.lower().split("_")) if w]
        wanted = "".join(w[0] for w in words) + _SPARE
        letter = next((k for k in wanted if k not in keys and k not in RESERVED and k.isprintable()), None)
        if letter is not None:
            keys[letter] = name
    return keys


KEY_SIGNS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "space": "space"}
"""Key -> its sign on the screen."""


def completions(text: str, space: ActionSpace) -> list[str]:
    """Return the completions of a typed text: names of actions, then values of enumerations."""
    name, blank, rest = text.partition(" ")
    if not blank:
        return [a.name for a in space.actions if a.name.startswith(name)]
    definition = space.find(name)
    if definition is None:
        return []
    parameters = definition.parameters
    if (key_values := named(parameters, rest)) is not None:
        key, begun = list(key_values.items())[-1]
        asked = next((p for p in parameters if p.name == key), None)
        kept = text[: text.rindex(f"{key}=") + len(key) + 1]
        words = (asked.choices() if asked is not None else None) or ()
        return [f"{kept}{c}" for c in words if c.lower().startswith(begun.lower())]
    found: list[str] = []
    for wanted in ([p for p in parameters if not p.optional], list(parameters)):
        given, left = in_order(wanted, rest)
        typing_a_word = bool(given) and not left and not text.endswith(" ")
        if len(given) == len(wanted) or (typing_a_word and wanted[len(given) - 1].choices() is None):
            continue
        begun = text[: len(text) - len(left)] if left else text
        begun = begun if begun.endswith(" ") else f"{begun} "
        fits = [c for c in wanted[len(given)].choices() or () if c.lower().startswith(left.lower())]
        found += [f"{begun}{c}" for c in [c for c in fits if c not in given.values()] or fits]
    return list(dict.fromkeys(found))


def why_not(action: Action, observation: Observation) -> str:
    """Return why an action is impossible now; empty if it is possible."""
    found = observation.is_available(action.name)
    if found is None or found.available:
        return ""
    return f"{action.name} is not possible now: {single_line(found.reason) or 'the game gives no reason'}."


def with_words(text: str, observation: Observation) -> str:
    """Return a typed text with the words of choices in place of the names and numbers that a person knows them by."""
    name, _, rest = single_line(text).partition(" ")
    told = observation.is_available(name)
    choices = {} if told is None else choices_of(told)
    words = {word for some in choices.values() for word in some}
    known = {typed.casefold(): word for typed, word in observation.typed_names().items() if word in words}
    known = {typed: word for typed, word in known.items() if typed not in {one.casefold() for one in words}}
    if not rest or not known:
        return text
    some = "|".join(re.escape(typed) for typed in sorted(known, key=len, reverse=True))
    pattern = re.compile(rf"(?<![^\s=\"'])(?:{some})(?![^\s\"'])", re.IGNORECASE)
    # A letter such as the dotless i matches another one without being the same in `casefold`.
    return f"{name} {pattern.sub(lambda found: known.get(found[0].casefold(), found[0]), rest)}"


def typed_choice(text: str, space: ActionSpace, observation: Observation) -> tuple[Action | None, str]:
    """Return the typed action, or None with a reason that names only possible actions."""
    name, _, rest = single_line(text).partition(" ")
    possible = legal_actions(space, observation)
    declared = meant(name, ActionSpace(possible)) or space.find(name)
    if declared is None:
        return typed_action(text, ActionSpace(possible))
    refused = why_not(Action(declared.name), observation)
    if not refused and declared.name not in {action.name for action in possible}:
        possible = (*possible, declared)  # unlisted, as the runtime's `tell` where there are two seats
    action, reason = typed_action(with_words(f"{declared.name} {rest}", observation), ActionSpace(possible))
    return (action, "") if action is not None else (None, refused or reason)


@dataclass
class Line:
    """The line that a person is typing."""

    text: str = ""
    open: bool = False
    """Whether keys go into the line."""
    at: int = 0
    """Position of the cursor."""
    _cycle: list[str] = field(default_factory=list)

    def begin(self, text: str = "") -> None:
        """Open the line with some text, the cursor at its end."""
        self.text, self.at, self.open = text, len(text), True

    def press(self, key: str, space: ActionSpace) -> str | None:
        """Handle a key; return the line at Enter."""
        if key == "tab":
            self._complete(space)
            return None
        self._cycle = []
        if key == "enter":
            done, self.text, self.at, self.open = self.text, "", 0, False
            return done
        if key == "esc":
            self.text, self.at, self.open = "", 0, False
        elif key in _MOVES:
            self.at = max(0, min(_MOVES[key](self.at), len(self.text)))
        elif key == "backspace" and self.at:
            self.at -= 1
            self.text = self.text[: self.at] + self.text[self.at + 1 :]
        elif key == "delete":
            self.text = self.text[: self.at] + self.text[self.at + 1 :]
        elif (typed := " " if key == "space" else key) and len(typed) == 1 and len(self.text) < LONGEST_LINE:
            self.text = self.text[: self.at] + typed + self.text[self.at :]
            self.at += 1
        return None

    def _complete(self, space: ActionSpace) -> None:
        if not self._cycle:
            self._cycle = completions(self.text, space)
        if self._cycle:
            self.begin(self._cycle[0])
            self._cycle = [*self._cycle[1:], self._cycle[0]]


_MOVES: Mapping[str, Callable[[int], int]] = {
    "left": lambda at: at - 1,
    "right": lambda at: at + 1,
    "home": lambda at: 0,
    "end": lambda at: LONGEST_LINE,
}
"""Key -> the new position of the cursor."""


def by_action(keys: Mapping[str, str]) -> dict[str, str]:
    """Return action -> sign of its key."""
    return {name: KEY_SIGNS.get(key, key) for key, name in keys.items()}


ASIDE = frozenset({TOOL, "avatar", "meta", "message"})
"""Categories of actions that are listed last: tools, and those of every world."""
MOST_IMPOSSIBLE = 12
"""Maximum number of impossible actions that are named rather than counted."""


class Question:
    """One decision of a person."""

    def __init__(self, seat: str, observation: Observation, space: ActionSpace) -> None:
        self.seat = seat
        self.observation = observation
        self.answer: asyncio.Future[Action] = asyncio.get_running_loop().create_future()
        """Resolved with the chosen action."""
        self.line = Line()
        self.reason = ""
        """Why the last choice was refused."""
        self._space = space
        self._keys = keymap(space)
        self._open = ActionSpace(legal_actions(space, observation))
        """The possible actions, with their possible targets."""

    def press(self, key: str) -> bool:
        """Handle a key; return whether it belongs to this decision."""
        if self.line.open:
            typed = self.line.press(key, self._open if key == "tab" else self._space)
            if typed is not None:
                action, self.reason = typed_choice(typed, self._space, self.observation)
                if action is not None:
                    self._choose(action)
                if self.reason and typed.strip():  # to be corrected
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
        """Return the typed line and the actions, as lines of that width."""
        signs, phrases = by_action(self._keys), self.observation.phrases()
        deeds: list[Text] = []
        tools: list[Text] = []
        impossible: list[Text] = []
        offered = set(self._open.names)
        for action in self._space.actions:
            can = not why_not(Action(action.name), self.observation)
            cell = Text(no_wrap=True, overflow="ellipsis")
            cell.append(signs.get(action.name, ":"), "bold yellow" if can else "dim")
            told = phrases.get(action.name) if can and action.name in signs else None  # others are typed by name
            cell.append(f" {single_line(told or action.name)}", "" if can else "dim strike")
            if action.name in offered or not (can or action.unlisted):
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
        hint = "  Tab completes, Esc cancels"
        room = max(10, width - 4)
        before, after = self.line.text[: self.line.at], self.line.text[self.line.at :]
        room_after = min(cell_len(after), room // 3)  # most of the room is for the text before the cursor
        if cell_len(before) > room - room_after:
            before = "…" + set_cell_size(before[::-1], room - room_after - 1)[::-1]
        if cell_len(after) > room - cell_len(before):
            after = set_cell_size(after, room - cell_len(before) - 1) + "…"
        line = Text.assemble((": ", "bold yellow"), (before, "bold"), ("▏", "blink"), (after, "bold"), no_wrap=True)
        return [*reason, line.append(hint, "dim") if cell_len(line.plain + hint) <= width else line]
