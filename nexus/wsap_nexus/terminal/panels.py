"""The parts of the screen: vitals, inventory, last actions, achievements, messages."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wsap_core.protocol import Achievement, EmbodiedObservation, Observation
from wsap_core.protocol.lines import shown as in_words
from wsap_core.untrusted import single_line
from wsap_nexus.terminal.spending import brief, packed, parts, rate
from wsap_nexus.terminal.story import LONGEST_MESSAGE, Note, SeatScene, Stage, Writing, folded

VITALS = {
    "health": "#e05a5a",
    "hp": "#e05a5a",
    "food": "#d9963c",
    "hunger": "#d9963c",
    "drink": "#4f9ae0",
    "thirst": "#4f9ae0",
    "energy": "#d8c84a",
    "fatigue": "#d8c84a",
    "stamina": "#d8c84a",
    "magicka": "#8a7cf0",
    "mana": "#8a7cf0",
    "oxygen": "#7fd0e0",
}
"""Status that is drawn as a bar -> colour."""

_LOW = 1 / 3
_LONGEST_NAME = 12
_WIDE = 50
"""Minimum cells for a seat's figures."""


def number(value: float) -> str:
    """Return a number with at most two decimals: 3, 0.5, 12.25."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if math.isfinite(value) else str(value)


def writing(now: Writing, width: int) -> Text:
    """Return the end of what a model is writing, in one line, or what is waited for; empty if no model is asked."""
    if not now.name:
        return Text("")
    if now.state:
        line = Text.assemble(" ", (f"{single_line(now.name)[:40]}: ", "cyan"), single_line(now.state))
        line.truncate(width, overflow="ellipsis")
        return line
    line = Text.assemble(" ", (f"{single_line(now.name)[:40]} is {'thinking' if now.thinks else 'writing'}: ", "cyan"))
    room = width - line.cell_len - 1
    text = single_line(now.text[-4 * width :])
    if len(now.text) > 4 * width or cell_len(text) > room:
        while cell_len(text) > room - 1:
            text = text[max(1, (cell_len(text) - room) // 2) :]
        text = f"…{text}"
    return line.append(text, "dim italic")


def vitals(scene: SeatScene, width: int) -> list[Text]:
    """Return the status, bars first, then effects; one line each."""
    observation = scene.observation
    if observation is None:
        return []
    bars: list[tuple[int, Text]] = []
    others = []
    for key, value in observation.status.items():
        name = single_line(key)
        if name.lower() in VITALS and isinstance(value, int | float) and not isinstance(value, bool):
            # Always in the same order: the status from the log is sorted by name.
            rank = list(VITALS).index(name.lower())
            bars.append((rank, bar(name, float(value), scene.maxima.get(str(key), float(value)), width)))
        else:
            others.append(Text.assemble((f"{name} ", "dim"), _figure(value), overflow="ellipsis", no_wrap=True))
    effects = ", ".join(single_line(effect.name) for effect in observation.active_effects)
    if effects:
        others.append(Text(effects, "bold magenta", overflow="ellipsis", no_wrap=True))
    return [line for _, line in sorted(bars, key=lambda entry: entry[0])] + others


def bar(name: str, value: float, highest: float, width: int) -> Text:
    """Return one line with a name, a bar and the number."""
    share = min(1.0, max(0.0, value / highest)) if highest > 0 else 0.0
    label = set_cell_size(name, min(_LONGEST_NAME, max(6, len(name))))
    figure = f"{number(value):>3}"
    room = max(4, width - cell_len(label) - len(figure) - 2)
    full = round(share * room)
    low = share <= _LOW
    text = Text(f"{label} ", "bold red" if low else "")
    text.append("█" * full, VITALS.get(name.lower(), "white"))
    text.append("░" * (room - full), "grey35")
    text.append(f" {figure}", "bold red" if low else "bold")
    return text


def has_inventory(observation: Observation | None) -> bool:
    """Return whether the seat carries something, or has a body."""
    return observation is not None and bool(observation.inventory or isinstance(observation, EmbodiedObservation))


def inventory(observation: Observation | None, width: int) -> list[Text]:
    """Return the inventory, as many items per line as fit."""
    carried = (observation.inventory if observation is not None else {}).items()
    items = [
        Text.assemble(single_line(n).replace("_", " "), " ", (f"{k}", "bold yellow"), no_wrap=True) for n, k in carried
    ]
    return flowing(items, width, "  ") or [Text("nothing", "dim")]


def flowing(cells: Iterable[Text], width: int, between: str) -> list[Text]:
    """Return cells in lines, as many per line as fit."""
    lines: list[Text] = []
    for cell in cells:
        if lines and cell_len(lines[-1].plain + between + cell.plain) <= width:
            lines[-1].append(between).append_text(cell)
        else:
            lines.append(cell)
    return lines


@dataclass
class Scroll:
    """The scroll position in the result of the last action."""

    at: int = 0
    """Lines above the window; limited when drawn."""
    page: int = 1
    """Lines in the window."""

    def press(self, key: str) -> bool:
        """Handle a key; return whether it scrolls."""
        if key in ("pageup", "pagedown"):
            self.at = max(0, self.at + (self.page if key == "pagedown" else -self.page))
        return key in ("pageup", "pagedown")

    def window(self, lines: Sequence[Text], height: int) -> list[Text]:
        """Return the lines in the window, with their numbers below."""
        if len(lines) <= height:
            self.at = 0
            return list(lines)
        self.page = max(1, height - 1)
        self.at = min(self.at, len(lines) - self.page)
        shown = f"lines {self.at + 1} to {self.at + self.page} of {len(lines)}; PgUp and PgDn scroll"
        return [*lines[self.at : self.at + self.page], Text(f"  {shown}", "dim", no_wrap=True, overflow="ellipsis")]


def actions(scene: SeatScene, width: int, height: int, *, scroll: Scroll | None = None) -> list[Text]:
    """Return the last actions with their reasoning, newest at the bottom, in at most `height` lines.

    With `scroll`, the result of the newest is shown in full, for the person who chose it.
    """
    if scroll is not None and scene.notes:
        newest = _entry(scene.notes[-1], 1, width, newest=True, room=LONGEST_MESSAGE, whole=True)
        if len(newest) > height:
            return scroll.window(newest, height)
    lines: list[list[Text]] = []
    left = height
    shown = folded(scene.notes)
    for index in range(len(shown) - 1, -1, -1):
        note, count = shown[index]
        # Repeated reasoning is shown only for the first step, and for the newest.
        said = index > 0 and lines != [] and shown[index - 1][0].reasoning == note.reasoning
        entry = _entry(
            replace(note, reasoning="") if said else note, count, width, newest=not lines, room=left,
            whole=scroll is not None,
        )  # fmt: skip
        if left < len(entry):
            break
        left -= len(entry)
        lines.append(entry)
    return [line for entry in reversed(lines) for line in entry]


def _entry(note: Note, count: int, width: int, *, newest: bool, room: int, whole: bool) -> list[Text]:
    head = Text(f"{note.number:>5} ", "dim", no_wrap=True, overflow="ellipsis")
    head.append(note.action, _action_style(note, newest=newest))
    if count > 1:
        head.append(f" ×{count}", "dim")
    if note.forced:
        head.append(" (forced)", "yellow")
    if note.outcome != "done":
        head.append(f" ({note.not_done})", "yellow")
    if note.reward:
        head.append(f" {note.reward:+.3g}", "green" if note.reward > 0 else "red")
    for name in note.achievements:
        head.append(f" ★ {name}", "bold yellow")
    lines = [head]
    if not note.whole and cell_len(head.plain) + len(note.message) + 2 <= width:
        head.append(f"  {note.message}" if note.message else "", "dim")
    elif room > 1 and newest and whole:
        told = [part for line in (note.whole or note.message).splitlines() for part in textwrap.wrap(line, width - 2)]
        lines += [Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in told]
    elif note.message and room > 1 and newest:
        lines.append(Text(f"      {note.message}", "dim", no_wrap=True, overflow="ellipsis"))
    elif note.message:
        head.append(f"  {note.message}", "dim")
    cause = single_line(note.info.cause) if note.forced and note.info is not None else ""
    if (why := cause or (note.reasoning and f"“{note.reasoning}”")) and room > len(lines):
        style = "yellow" if cause else "italic cyan" if newest else "italic dim"
        lines.append(Text(f"      {why}", style, no_wrap=True, overflow="ellipsis"))
    if note.done:
        limit = " at a limit" if note.truncated else ""
        lines.append(Text(f"      — the episode ended{limit} after step {note.number} —", "bold", no_wrap=True))
    return lines[: max(1, room)]


def _action_style(note: Note, *, newest: bool) -> str:
    colour = "" if note.success else "red"
    return f"bold {colour}".strip() if newest else colour


def achievements(scene: SeatScene, catalogue: tuple[Achievement, ...], width: int, height: int) -> list[Text]:
    """Return achievements with their steps, and missing ones, in columns; those that don't fit are counted."""
    known = [single_line(a.name) for a in catalogue]
    done = sorted(((single_line(name), step) for name, step in scene.unlocked.items()), key=lambda item: item[1])
    reached = {name for name, _ in done}
    missing = [name for name in known if name not in reached]
    # Wide enough for the count of those that are left out, too.
    longest = max(15, *(cell_len(name) for name in [*known, *reached])) + 9
    columns = max(1, width // longest)
    cells = [*_stars(done), *(Text(f"· {name}", "dim") for name in missing)]
    room = columns * height
    if len(cells) > room:
        cells = _cut(done, len(missing), room)
    return _in_columns(cells, columns, width)


def _cut(done: list[tuple[str, int]], missing: int, room: int) -> list[Text]:
    shown = done[-(room - 1) :] if room > 1 else []
    earlier = len(done) - len(shown)
    words = ([f"{earlier} earlier"] if earlier else []) + ([f"{missing} to go"] if missing else [])
    return [*_stars(shown), Text("· " + ", ".join(words), "dim")]


def _stars(done: Iterable[tuple[str, int]]) -> list[Text]:
    return [Text.assemble(("★ ", "bold yellow"), (name, "bold green"), (f" {step}", "dim")) for name, step in done]


def _in_columns(cells: list[Text], columns: int, width: int) -> list[Text]:
    rows = math.ceil(len(cells) / columns)
    each = width // columns
    lines = []
    for row in range(rows):
        line = Text(no_wrap=True, overflow="ellipsis")
        for column in range(columns):
            index = column * rows + row
            if index < len(cells):
                cell = cells[index].copy()
                cell.truncate(each - 1, overflow="ellipsis", pad=True)
                line.append_text(cell).append(" ")
        lines.append(line)
    return lines


def headline(stage: Stage, width: int) -> Text:
    """Return the first line: game, agent, run and state."""
    seat = stage.seat
    left = Text(no_wrap=True, overflow="ellipsis")
    left.append(f" {single_line(stage.title)} ", "bold")
    left.append(f" {single_line(seat.agent)}", "bold cyan")
    if len(stage.seats) > 1:
        left.append(f" as {single_line(seat.name)}", "cyan")
    left.append(f"  seed {stage.seed}", "dim")
    right = Text(no_wrap=True)
    right.append(single_line(stage.run or "not recorded"), "dim" if stage.run else "yellow")
    right.append(f"  {single_line(stage.state)} ", "bold")
    gap = width - cell_len(left.plain) - cell_len(right.plain)
    if gap < 1:
        right = Text(f"{single_line(stage.state)} ", "bold", no_wrap=True)
        gap = width - cell_len(left.plain) - cell_len(right.plain)
    if gap < 1:
        left.truncate(max(1, width - cell_len(right.plain) - 1), overflow="ellipsis")
        gap = 1
    return left.append(" " * gap).append_text(right)


def has_bars(scene: SeatScene) -> bool:
    """Return whether a seat's status has vitals that are drawn as bars."""
    status = scene.observation.status if scene.observation is not None else {}
    return any(single_line(key).lower() in VITALS for key in status)


def figures(stage: Stage, *, status: bool = False, now: bool = True) -> Text:
    """Return the second line: step, the status if requested, episode, reward, scores, and the time of day if `now`."""
    seat = stage.seat
    limit = f"/{stage.limit}" if stage.limit is not None else ""
    shown: list[tuple[str, str]] = [("step", f"{seat.steps}{limit}")]
    if status and seat.observation is not None:
        shown += [(single_line(key), _figure(value)) for key, value in seat.observation.status.items()]
    of = f"/{stage.episodes}" if stage.episodes is not None else ""
    shown += [("episode", f"{seat.episode + 1}{of}"), ("reward", number(seat.reward))]
    shown += [
        (single_line(name), f"{number(round(value, 2))}{single_line(unit)}") for name, value, unit in stage.scores
    ]
    if now and seat.observation is not None and seat.observation.time_of_day:
        shown.append(("", single_line(seat.observation.time_of_day)))
    line = Text(" ", no_wrap=True, overflow="ellipsis")
    for label, value in shown:
        line.append(f"{label} " if label else "", "dim").append(value, "bold").append("   ")
    return line


def _figure(value: object) -> str:
    if isinstance(value, Mapping | list | tuple):
        return in_words(value)
    shown = "yes" if value is True else "no" if value is False else single_line(value)
    return number(value) if isinstance(value, float) else shown


def spending(stage: Stage, width: int, most: int) -> list[Text]:
    """Return the model usage in at most `most` lines; none if no model was called."""
    slower = replace(stage.spending, tokens_per_second=None)
    whole = parts(stage.spending)
    candidates = (whole + rate(stage.spending), whole, parts(slower), brief(stage.spending))
    lines = next((found for words in candidates if len(found := packed(words, width - 9)) <= most), None)
    if lines is None:
        lines = packed(candidates[-1], width - 9)[:most]
    heads = ["models ", *[" " * 7] * most]
    return [
        Text.assemble(" ", (head, "dim"), line, no_wrap=True, overflow="ellipsis")
        for head, line in zip(heads, lines, strict=False)
    ]


def table_of_seats(stage: Stage, width: int, most: int) -> list[Text]:
    """Return at most `most` lines for visible seats, the one in focus included: agent, last action, figures if wide."""
    chosen = stage.seat
    shown = [seat for seat in stage.seats if not seat.hidden]
    hidden = Counter(single_line(seat.agent) for seat in stage.seats if seat.hidden)
    longest = max((cell_len(single_line(seat.name)) for seat in shown), default=0)
    usual, count = Counter(seat.agent for seat in shown).most_common(1)[0] if shown else ("", 0)
    alike = usual if count > max(1, len(shown) // 2) else None
    lines = []
    for seat in shown:
        line = Text("▸ " if seat is chosen else "  ", "bold yellow", no_wrap=True, overflow="ellipsis")
        line.append(set_cell_size(single_line(seat.name), longest) + " ", "bold" if seat is chosen else "")
        if seat.agent != alike:  # the agent of most seats is left out
            line.append(f"{single_line(seat.agent)} ", "cyan")
        if width >= _WIDE:
            line.append(f" step {seat.steps}  reward {number(seat.reward)} ", "dim")
        if seat.notes:
            line.append(f" {seat.notes[-1].action}", "")
        if seat.done:
            line.append("  done", "dim")
        lines.append(line)
    if hidden:
        others = ", ".join(f"{count} {agent}" for agent, count in hidden.items())
        lines.append(Text.assemble("  ", ("with ", "dim"), (others, "cyan"), no_wrap=True, overflow="ellipsis"))
    if len(lines) <= most:
        return lines
    room = max(1, most - 1)
    first = max(0, min(shown.index(chosen) - room // 2 if chosen in shown else 0, len(lines) - room))
    left_out = Text(f"  and {len(lines) - room} more: press Tab", "dim", no_wrap=True, overflow="ellipsis")
    return [*lines[first : first + room], left_out]


def heard(observation: Observation | None, height: int) -> list[Text]:
    """Return the last messages to the seat."""
    messages = list(observation.messages)[-height:] if observation is not None else []
    lines = []
    for message in messages:
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(single_line(message.sender), "bold cyan").append(f" ({single_line(message.type)}): ", "dim")
        lines.append(line.append(single_line(message.content)))
    return lines


def place(observation: Observation | None) -> str:
    """Return a short description of the seat's location."""
    if observation is None:
        return ""
    location = observation.location
    return single_line(location.description or location.region or "")
