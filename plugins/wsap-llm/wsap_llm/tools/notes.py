"""The notes tool."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.errors import SnapshotError
from wsap_core.protocol import ParamDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.tool import ToolContext
from wsap_llm.memory.cells import cut, pack, unpack

MOST, TITLE, TEXT = 50, 80, 1000
"""Maximum number of notes, and maximum length of a title and of a text in characters."""


class Notes:
    """Stores an agent's notes by title.

    The tool's notes can be listed, changed and deleted; each written note is also added to the memory, if there is one,
    with `world` as provenance, so that it can be recalled later and in other games.
    """

    inward = True
    """It only affects the agent."""
    definition = Tool(
        "notes",
        "Your own notes: write one under a title, read it again, list the titles, or delete one.",
        [
            ParamDef("do", "write|read|list|delete"),
            ParamDef("title", optional=True, schema={"type": "string", "maxLength": TITLE}, description="Of the note"),
            ParamDef("text", optional=True, schema={"type": "string", "maxLength": TEXT}, description="What to write"),
        ],
    )

    def __init__(self, memory: AgentMemory | None = None, world: str = "") -> None:
        self._memory = memory
        self._world = world
        self._notes: dict[str, str] = {}

    def run(self, parameters: Mapping[str, JsonValue]) -> str:
        """Return the requested note, the titles, or one line about the outcome."""
        title = cut(parameters.get("title") or "", TITLE)
        match parameters.get("do"):
            case "write":
                return self._write(title, cut(parameters.get("text") or "", TEXT))
            case "read":
                return self._notes[title] if title in self._notes else self._unknown(title)
            case "delete":
                if title not in self._notes:
                    return self._unknown(title)
                del self._notes[title]
                return f"The note {title!r} is deleted."
            case _:
                return self._titles()

    def snapshot(self) -> bytes:
        """Return all notes."""
        return pack("notes", {"notes": [[title, text] for title, text in self._notes.items()]})

    def restore(self, data: bytes) -> None:
        """Replace all notes by those of a snapshot; raise SnapshotError, without changes, if the data is damaged."""
        found = unpack("notes", data).get("notes")
        if not isinstance(found, list) or len(found) > MOST or not all(_is_note(item) for item in found):
            raise SnapshotError("The snapshot of the notes is damaged: it is not a list of titles and texts.")
        self._notes = {cut(title, TITLE): cut(text, TEXT) for title, text in found}

    def _write(self, title: str, text: str) -> str:
        if not title or not text:
            return "A note needs a title and a text."
        if title not in self._notes and len(self._notes) >= MOST:
            return f"There are {MOST} notes already; delete one first."
        self._notes.pop(title, None)  # a rewritten note is the newest
        self._notes[title] = text
        if self._memory is not None:
            self._memory.note(f"{title}: {text}", kind="note", world=self._world)
        return f"The note {title!r} is written."

    def _titles(self) -> str:
        return "Notes, oldest first: " + "; ".join(self._notes) if self._notes else "There are no notes."

    def _unknown(self, title: str) -> str:
        return f"There is no note {title!r}. {self._titles()}"


def _is_note(item: JsonValue) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item)


def create(context: ToolContext) -> Notes:
    """Return notes for the agent; they are added to its memory unless the option `remember` is false."""
    remembers = context.config.get("remember", True) not in (False, "false", "no", "0")
    return Notes(context.memory if remembers else None, context.world)
