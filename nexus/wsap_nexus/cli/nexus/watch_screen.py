"""A nexus on one screen: who is where, what happens; or one agent, with its map and its last actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.text import Text

from wsap_core.untrusted import one_line
from wsap_nexus.cli.doctor import _bytes
from wsap_nexus.cli.nexus.onlooker import Following, Sight
from wsap_nexus.cli.nexus.report import AgentRow, held
from wsap_nexus.cli.nexus.status import duration, plural
from wsap_nexus.store.events import NexusEvent, sentences
from wsap_nexus.terminal.panels import actions
from wsap_nexus.terminal.screen import Look, compose, fits

KEYS = (
    ("↑ ↓", "choose an agent"),
    ("Enter", "look at it: its map, its last actions"),
    ("Esc", "back to everybody"),
    ("Tab", "the next agent"),
    ("space", "pause the agent, and let it go on"),
    ("s", "let a paused agent make one decision"),
    ("q", "leave; the nexus goes on"),
    ("?", "this help"),
)
"""What the keys do."""

WIDE = 76
"""Columns from which on agents and events stand beside each other."""

_ALL_KEYS = "↑↓ choose  Enter look at it  space pause  ? help  q leave"
_ONE_KEYS = "Esc everybody  Tab next  space pause  s step  ? help  q leave"
_BORDER = "grey42"


def overview(
    sight: Sight, chosen: int, width: int, height: int, *, now: float, note: str = "", helping: bool = False
) -> RenderableType:
    """Return the screen with everybody.

    Args:
        sight: what is shown.
        chosen: which agent is chosen.
        width: columns of the terminal.
        height: its rows.
        now: seconds since 1970.
        note: something to say, in place of the keys.
        helping: whether the keys are shown.
    """
    root = Layout()
    body = _help() if helping else _body(sight, chosen, width, height - 2)
    root.split_column(
        Layout(headline(sight, now), size=1),
        Layout(body),
        Layout(Text(f" {one_line(note or _ALL_KEYS)}", "bold yellow" if note else "dim", no_wrap=True,
                    overflow="ellipsis"), size=1),
    )  # fmt: skip
    return root


def headline(sight: Sight, now: float) -> Text:
    """Return the first line: whether it runs, where, and how large it is."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if sight.running is not None:
        line.append(" The nexus ", "bold green").append(sight.running.url.partition("#")[0], "underline")
        line.append(f"  up {duration(max(0.0, now - sight.running.started))}", "dim")
    else:
        line.append(" The nexus does not run ", "bold yellow").append("this is how it was left", "dim")
    inside = sum(a.session is not None for a in sight.agents)
    line.append(f"  {plural(len(sight.agents), 'agent')}, {inside} in worlds", "dim")
    if sight.bytes is not None:
        line.append(f"  {_bytes(sight.bytes)}", "dim")
    return line


def _body(sight: Sight, chosen: int, width: int, height: int) -> RenderableType:
    layout = Layout()
    if width >= WIDE:
        left = max(32, min(46, width // 2))
        worlds = min(len(sight.worlds), 6) + 2 if sight.worlds and height >= 14 else 0
        column = Layout(size=left)
        agents = Layout(_panel(_agents(sight.agents, chosen, left - 4, height - worlds - 2), "Agents"))
        column.split_column(agents, *([Layout(_panel(_worlds(sight), "Worlds"), size=worlds)] if worlds else []))
        layout.split_row(column, Layout(_panel(_happened(sight, height - 2), "What happens")))
        return layout
    rows = max(3, min(len(sight.agents) + 2, height // 2))
    layout.split_column(
        Layout(_panel(_agents(sight.agents, chosen, width - 4, rows - 2), "Agents"), size=rows),
        Layout(_panel(_happened(sight, height - rows - 2), "What happens")),
    )
    return layout


def _agents(agents: Sequence[AgentRow], chosen: int, width: int, height: int) -> RenderableType:
    if not agents:
        return Text("nobody yet: wsap nexus agents add NAME", "dim")
    height = max(1, height)
    first = max(0, min(chosen - height // 2, len(agents) - height))
    names = [one_line(a.name) if a.name.lower() == a.id else f"{one_line(a.name)} ({a.id})" for a in agents]
    widest = min(max(map(len, names)), max(6, width // 3))
    lines = []
    for index, agent in enumerate(agents[first : first + height], first):
        line = Text("▸ " if index == chosen else "  ", "bold yellow", no_wrap=True, overflow="ellipsis")
        line.append(f"{names[index][:widest]:<{widest}} ", "bold" if index == chosen else "")
        if agent.session is not None:
            line.append(one_line(agent.place), "cyan").append(f" {agent.steps} ")
        elif agent.state == "active":
            line.append("in the nexus", "dim")
        if agent.state != "active":
            line.append(f"❚❚ {held(agent)}", "yellow")
        lines.append(line)
    return Group(*lines)


def _worlds(sight: Sight) -> RenderableType:
    return Group(
        *(
            Text.assemble((f"{one_line(w.game)} ", "cyan"), (f"{plural(w.worlds, 'world')}, {w.agents} in it", "dim"),
                          no_wrap=True, overflow="ellipsis")
            for w in sight.worlds[:6]
        )
    )  # fmt: skip


def _happened(sight: Sight, height: int) -> RenderableType:
    told = sentences(sight.events, sight.names)[-max(1, height) :]
    return Group(*(event_text(event, sentence) for event, sentence in told)) if told else Text("nothing yet", "dim")


_COLOURS = {"died": "bold red", "achievement": "bold yellow", "entered": "green", "left": "cyan",
            "agent_failed": "red", "world_failed": "red", "world_crashed": "red", "entry_refused": "red",
            "listener_failed": "red", "skill_gained": "magenta"}  # fmt: skip


def event_text(event: NexusEvent, sentence: str) -> Text:
    """Return an event's sentence as a line, with its time."""
    line = Text(f"{clock(event.time)} ", "dim", no_wrap=True, overflow="ellipsis")
    return line.append(sentence, _COLOURS.get(event.kind, ""))


def clock(moment: float) -> str:
    """Return the time of day of a moment."""
    return datetime.fromtimestamp(moment).astimezone().strftime("%H:%M:%S")


def portrait(
    follow: Following | None, agent: AgentRow, width: int, height: int, *, plain: bool, note: str, helping: bool
) -> RenderableType:
    """Return the screen with one agent; in a small terminal, lines in place of the map.

    Args:
        follow: what it does; None where there is nothing yet.
        agent: how it is listed.
        width: columns of the terminal.
        height: its rows.
        plain: whether colours are left out.
        note: something to say, in place of the keys.
        helping: whether the keys are shown.
    """
    if follow is None:
        return Text(f" {one_line(agent.id)} has done nothing yet.", "dim")
    state = f"❚❚ {held(agent)}" if agent.state == "paused" else "▶ live"
    stage = replace(follow.stage(one_line(agent.name)), state=state, keys=note or _ONE_KEYS)
    if fits(width, height):
        return compose(stage, width, height, Look(plain=plain, help=KEYS if helping else ()))
    scene = stage.seat
    status = ", ".join(
        f"{one_line(k)} {one_line(v)}" for k, v in (scene.observation.status if scene.observation else {}).items()
    )
    head = [
        Text(f"{one_line(stage.title)}  {state}", "bold", no_wrap=True, overflow="ellipsis"),
        Text(f"step {scene.steps}, reward {scene.reward:g}", "dim", no_wrap=True, overflow="ellipsis"),
        Text(status, "", no_wrap=True, overflow="ellipsis"),
    ]
    lines = actions(scene, width - 1, max(1, height - len(head) - 1))
    return Group(*head, *lines, Text(one_line(stage.keys), "dim", no_wrap=True, overflow="ellipsis"))


def _help() -> RenderableType:
    return _panel(Group(*(Text.assemble((f"  {key:<8}", "bold yellow"), what) for key, what in KEYS)), "Keys")


def _panel(content: RenderableType, title: str) -> Panel:
    return Panel(content, title=Text(title), title_align="left", border_style=_BORDER, padding=(0, 1))
