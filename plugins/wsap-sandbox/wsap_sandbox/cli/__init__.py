"""`wsap sandbox`: begin, run, read and change stories. Each command is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.cli.grouped import lazy_group

_HERE = "wsap_sandbox.cli"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "new": (f"{_HERE}.change:new", "Begin a story."),
    "run": (f"{_HERE}.run:run", "Let a story go on: for some ticks, by hand, or until stopped."),
    "step": (f"{_HERE}.run:step", "Carry out one tick."),
    "status": (f"{_HERE}.read:status", "Show the tick, who is where, and what it took."),
    "watch": (f"{_HERE}.read:watch", "Read a story, and follow it while it is told."),
    "inspect": (f"{_HERE}.read:inspect", "Look at a character, a place, a tick, or the prompt behind a line."),
    "whisper": (f"{_HERE}.change:whisper", "Whisper something to a character."),
    "event": (f"{_HERE}.change:event", "Let something happen in a place."),
    "object": (f"{_HERE}.change:put_object", "Put an object into a place, or into somebody's hands."),
    "edit": (f"{_HERE}.change:edit", "Change a place, a character or an object."),
    "move": (f"{_HERE}.change:move", "Move a character or an object."),
    "takeover": (f"{_HERE}.change:takeover", "Decide what a character means to do in the next tick."),
    "rewind": (f"{_HERE}.change:rewind", "Go back to an earlier tick; nothing recorded is lost."),
    "branch": (f"{_HERE}.change:branch", "Begin another story from a tick of this one."),
    "diff": (f"{_HERE}.change:diff", "Compare two stories, such as two branches."),
    "export": (f"{_HERE}.read:export", "Write a story as JSON, Markdown or HTML, or the world as a file."),
    "reset": (f"{_HERE}.change:reset", "Go back to the beginning."),
}
"""Name -> import path, and its line in the help."""


sandbox = lazy_group(
    "sandbox",
    "Begin, run, read and change stories that tell themselves.",
    COMMANDS,
    examples=(
        "wsap sandbox new village",
        "wsap sandbox run village --ticks 5",
        'wsap sandbox whisper village anna "The dam will not hold."',
    ),
)
