"""Write `docs/reference/nexus-events.md` from the event classes.

    python tools/write_event_reference.py

A test compares the page with what this writes.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

from wsap_nexus.store.events import AgentEvent, GameEvent, NexusEvent, agents, nexus, passing, sessions
from wsap_nexus.store.events.base import GainEvent
from wsap_nexus.store.events.endings import ENDINGS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "nexus-events.md"
HEAD = """# The events of a nexus

A nexus writes every event to its log, in the transaction of the change that it reports. `GET /nexus/events` and `wsap
nexus watch --json` return the events, and listeners of plugins receive them (see
[](../how-to/listen-to-a-nexus.md)). Each is an instance of one of the classes below;
`event.sentence()` describes it in English. `python tools/write_event_reference.py` generates this page.

Every event has a `kind`, a `seq` (its number in the log), a `time` (seconds since 1970) and, if they apply,
an `agent_id`, a `game` and a `session_id`. In JSON, the fields below are in its `body`. An event of an unknown kind
is decoded as `OtherEvent`.

An event is public, readable without a token, only if this page says so, and then only the named fields of its body.
Everything else requires the token of the agent that the event is about, or that of the owner of the nexus. Listeners
and `wsap nexus watch` get everything.
"""
ENDING = """## Why sessions end

The `reason` of `left`, and its text:

| reason | text |
|---|---|
"""
GROUPS = {
    "Agents": agents,
    "Sessions, worlds and items": sessions,
    "The nexus and its games": nexus,
    "Told while they last, and not in the log": passing,
}
BASES = (NexusEvent, AgentEvent, GameEvent, GainEvent)


def fields_of(event: type[NexusEvent]) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and description of each field of a class, with those of its bases first."""
    for cls in reversed(event.__mro__):
        if not issubclass(cls, NexusEvent) or cls in BASES:
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        assert isinstance(body, ast.ClassDef)
        for line, after in zip(body.body, [*body.body[1:], None], strict=True):
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.target.id == "kind":
                continue
            described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = str(after.value.value) if described else ""  # type: ignore[union-attr]  # as `described` says
            yield line.target.id, ast.unparse(line.annotation), " ".join(text.split())


def section(event: type[NexusEvent]) -> str:
    """Return the section of one kind."""
    kind = event.model_fields["kind"].default
    lines = [f"### `{kind}`", "", f"`{event.__name__}`: {inspect.cleandoc(event.__doc__ or '')}", ""]
    if event.PUBLIC is not None:
        shown = [name for name, _, _ in fields_of(event) if name in event.PUBLIC]
        lines += [f"Public{': ' if shown else ''}{', '.join(f'`{name}`' for name in shown)}.", ""]
    for name, annotation, text in fields_of(event):
        lines.append(f"- `{name}`: `{annotation}`{'. ' + text if text else ''}")
    return "\n".join(lines).rstrip() + "\n"


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for title, module in GROUPS.items():
        classes = [
            found
            for found in vars(module).values()
            if inspect.isclass(found)
            and found.__module__ == module.__name__
            and "kind" in vars(found)["__annotations__"]
        ]
        parts += [f"## {title}\n", f"The classes are in `{module.__name__}`.\n", *(section(event) for event in classes)]
    table = "\n".join(f"| `{reason}` | {told} |" for reason, told in ENDINGS.items())
    return "\n".join([*parts, ENDING + table]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
