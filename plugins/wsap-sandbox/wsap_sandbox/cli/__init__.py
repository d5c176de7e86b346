"""`wsap sandbox`: start, run, read and change stories. Each command is imported on first use."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.cli.grouped import lazy_group

_HERE = "wsap_sandbox.cli"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "new": (f"{_HERE}.change:new", "Start a story."),
    "run": (f"{_HERE}.run:run", "Continue a story: for a number of ticks, by hand, or until stopped."),
    "step": (f"{_HERE}.run:step", "Run one tick."),
    "status": (f"{_HERE}.read:status", "Show the tick, who is where, and the resources used."),
    "watch": (f"{_HERE}.read:watch", "Read a story, and follow it while it is told."),
    "inspect": (f"{_HERE}.read:inspect", "Show a character, a place, a tick, or the prompt of a model call."),
    "whisper": (f"{_HERE}.change:whisper", "Whisper to a character."),
    "event": (f"{_HERE}.change:event", "Make something happen in a place."),
    "object": (f"{_HERE}.change:put_object", "Add an object to a place or a character's inventory."),
    "edit": (f"{_HERE}.change:edit", "Change a place, a character or an object."),
    "move": (f"{_HERE}.change:move", "Move a character or an object."),
    "takeover": (f"{_HERE}.change:takeover", "Set a character's intention for the next tick."),
    "rewind": (f"{_HERE}.change:rewind", "Go back to an earlier tick; nothing recorded is lost."),
    "branch": (f"{_HERE}.change:branch", "Start another story from a tick of this one."),
    "diff": (f"{_HERE}.change:diff", "Compare two stories, such as two branches."),
    "export": (f"{_HERE}.read:export", "Write a story as JSON, Markdown or HTML, or its world to a file."),
    "reset": (f"{_HERE}.change:reset", "Go back to the beginning."),
}


sandbox = lazy_group(
    "sandbox",
    "Start, run, read and change stories that tell themselves.",
    COMMANDS,
    examples=(
        "wsap sandbox new village",
        "wsap sandbox run village --ticks 5",
        'wsap sandbox whisper village anna "The dam will not hold."',
    ),
)
