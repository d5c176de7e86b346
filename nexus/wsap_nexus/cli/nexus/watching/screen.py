"""The screens of `wsap nexus watch`: agents and events, or one agent with its map and last actions."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.text import Text

from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import text_of_size
from wsap_nexus.cli.nexus.report import AgentRow, held
from wsap_nexus.cli.nexus.status import duration
from wsap_nexus.cli.nexus.watching.client import Following, Sight
from wsap_nexus.store.events import NexusEvent, sentences
from wsap_nexus.terminal.panels import actions
from wsap_nexus.terminal.panels import writing as written
from wsap_nexus.terminal.screen import Look, compose, fits
from wsap_nexus.terminal.story import Writing

KEYS = (
    ("↑ ↓", "select an agent"),
    ("Enter", "show its map and its last actions"),
    ("Esc", "back to all agents"),
    ("Tab", "the next agent"),
    ("space", "pause or resume the agent"),
    ("s", "let a paused agent make one decision"),
    ("q", "leave; the nexus keeps running"),
    ("?", "this help"),
)

WIDE = 76
"""Minimum columns to show agents and events side by side."""

_ALL_KEYS = "↑↓ select  Enter show  space pause  ? help  q leave"
_ONE_KEYS = "Esc all agents  Tab next  space pause  s step  ? help  q leave"
_BORDER = "grey42"


def overview(
    sight: Sight, chosen: int, width: int, height: int, *, now: float, note: str = "", helping: bool = False
) -> RenderableType:
    """Return the screen with all agents; `note` replaces the keys."""
    root = Layout()
    body = _help() if helping else _body(sight, chosen, width, height - 2)
    root.split_column(
        Layout(headline(sight, now), size=1),
        Layout(body),
        Layout(Text(f" {single_line(note or _ALL_KEYS)}", "bold yellow" if note else "dim", no_wrap=True,
                    overflow="ellipsis"), size=1),
    )  # fmt: skip
    return root


def headline(sight: Sight, now: float) -> Text:
    """Return the first line: whether the nexus is running, its address, and its size."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if sight.running is not None:
        line.append(" The nexus ", "bold green").append(sight.running.url.partition("#")[0], "underline")
        line.append(f"  up {duration(max(0.0, now - sight.running.started))}", "dim")
    else:
        line.append(" The nexus is not running ", "bold yellow").append("this is its last state", "dim")
    inside = sum(a.session is not None for a in sight.agents)
    line.append(f"  {plural(len(sight.agents), 'agent')}, {inside} in worlds", "dim")
    if sight.bytes is not None:
        line.append(f"  {text_of_size(sight.bytes)}", "dim")
    return line


def _body(sight: Sight, chosen: int, width: int, height: int) -> RenderableType:
    layout = Layout()
    if width >= WIDE:
        left = max(32, min(46, width // 2))
        worlds = min(len(sight.worlds), 6) + 2 if sight.worlds and height >= 14 else 0
        column = Layout(size=left)
        agents = Layout(_panel(_agents(sight, chosen, left - 4, height - worlds - 2), "Agents"))
        column.split_column(agents, *([Layout(_panel(_worlds(sight), "Worlds"), size=worlds)] if worlds else []))
        layout.split_row(column, Layout(_panel(_happened(sight, height - 2), "Events")))
        return layout
    rows = max(3, min(len(sight.agents) + 2, height // 2))
    layout.split_column(
        Layout(_panel(_agents(sight, chosen, width - 4, rows - 2), "Agents"), size=rows),
        Layout(_panel(_happened(sight, height - rows - 2), "Events")),
    )
    return layout


def _agents(sight: Sight, chosen: int, width: int, height: int) -> RenderableType:
    agents = sight.agents
    if not agents:
        return Text("no agents yet: wsap nexus agents add NAME", "dim")
    height = max(1, height)
    first = max(0, min(chosen - height // 2, len(agents) - height))
    names = [single_line(a.name) if a.name.lower() == a.id else f"{single_line(a.name)} ({a.id})" for a in agents]
    widest = min(max(map(len, names)), max(6, width // 3))
    lines, moment = [], time.monotonic()
    for index, agent in enumerate(agents[first : first + height], first):
        line = Text("▸ " if index == chosen else "  ", "bold yellow", no_wrap=True, overflow="ellipsis")
        line.append(f"{names[index][:widest]:<{widest}} ", "bold" if index == chosen else "")
        if agent.session is not None:
            line.append(single_line(agent.place), "cyan").append(f" {agent.steps} ")
        elif agent.state == "active":
            line.append("in the nexus", "dim")
        if agent.state != "active":
            line.append(f"❚❚ {held(agent)}", "yellow")
        if (heard := sight.thoughts.get(agent.id)) is not None and (now := heard.writing(moment)).name:
            state = now.state or ("thinking" if now.thinks else "writing")
            line.append(f" {single_line(now.name).rpartition('/')[2][:20]}: {single_line(state)}", "dim italic")
        lines.append(line)
    return Group(*lines)


def _worlds(sight: Sight) -> RenderableType:
    return Group(
        *(
            Text.assemble((f"{single_line(w.game)} ", "cyan"),
                          (f"{plural(w.worlds, 'world')}, {plural(w.agents, 'agent')}", "dim"),
                          no_wrap=True, overflow="ellipsis")
            for w in sight.worlds[:6]
        )
    )  # fmt: skip


def _happened(sight: Sight, height: int) -> RenderableType:
    told = sentences(sight.events, sight.names)[-max(1, height) :]
    return Group(*(event_text(event, sentence) for event, sentence in told)) if told else Text("nothing yet", "dim")


_COLOURS = {"died": "bold red", "achievement": "bold yellow", "entered": "green", "left": "cyan",
            "agent_failed": "red", "world_crashed": "red", "entry_refused": "red",
            "listener_failed": "red", "skill_gained": "magenta"}  # fmt: skip


def event_text(event: NexusEvent, sentence: str) -> Text:
    """Return an event's sentence as a line, with its time."""
    line = Text(f"{clock(event.time)} ", "dim", no_wrap=True, overflow="ellipsis")
    return line.append(sentence, _COLOURS.get(event.kind, ""))


def clock(moment: float) -> str:
    """Return the time of day of a moment."""
    return datetime.fromtimestamp(moment).astimezone().strftime("%H:%M:%S")


def agent_screen(
    follow: Following | None,
    agent: AgentRow,
    width: int,
    height: int,
    *,
    plain: bool,
    note: str,
    helping: bool,
    writing: Writing | None = None,
) -> RenderableType:
    """Return the screen with one agent, without the map in a small terminal; `note` replaces the keys."""
    thought = [] if writing is None else [written(writing, width)]
    if follow is None:
        return Group(Text(f" {single_line(agent.id)} has done nothing yet.", "dim"), *thought)
    state = f"❚❚ {held(agent)}" if agent.state == "paused" else "▶ live"
    stage = replace(follow.stage(single_line(agent.name)), state=state, keys=note or _ONE_KEYS, writing=writing)
    if fits(width, height):
        return compose(stage, width, height, Look(plain=plain, help=KEYS if helping else ()))
    scene = stage.seat
    status = ", ".join(
        f"{single_line(k)} {single_line(v)}" for k, v in (scene.observation.status if scene.observation else {}).items()
    )
    head = [
        Text(f"{single_line(stage.title)}  {state}", "bold", no_wrap=True, overflow="ellipsis"),
        Text(f"step {scene.steps}, reward {scene.reward:g}", "dim", no_wrap=True, overflow="ellipsis"),
        Text(status, "", no_wrap=True, overflow="ellipsis"),
    ]
    lines = actions(scene, width - 1, max(1, height - len(head) - len(thought) - 1))
    return Group(*head, *lines, *thought, Text(single_line(stage.keys), "dim", no_wrap=True, overflow="ellipsis"))


def _help() -> RenderableType:
    return _panel(Group(*(Text.assemble((f"  {key:<8}", "bold yellow"), what) for key, what in KEYS)), "Keys")


def _panel(content: RenderableType, title: str) -> Panel:
    return Panel(content, title=Text(title), title_align="left", border_style=_BORDER, padding=(0, 1))
