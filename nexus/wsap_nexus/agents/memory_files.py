"""Named memories of earlier versions: files of their own, each taken over once as an agent of the database.

`wsap play --mind ada` kept what was remembered in `minds/ada.json` in the data folder, and who ada was
in `minds/ada.md`. The first run as ada takes both over, in whichever database it is recorded; the
files stay, renamed.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsap_core.errors import StorageError
from wsap_core.untrusted import one_line
from wsap_nexus.agents.identity import LONGEST, set_persona
from wsap_nexus.agents.memory import SavedMemories, SavedMemory
from wsap_nexus.store.nexus_store import NexusStore

LARGEST = 256 * 1024 * 1024
"""Most bytes of a file that is read."""
TAKEN = ".taken-over"
"""What the name of a file ends in that was taken over."""


def take_over(folder: Path, name: str, ledger: NexusStore) -> list[str]:
    """Make the files of a named memory an agent's of that name, if there are any, and return what to tell about it.

    A file that is damaged, or that would replace what the agent remembers, is left where it is. Killed
    in between, it is gone on with the next time.

    Args:
        folder: where the files are.
        name: the agent, whose id has been checked.
        ledger: nobody else writes there about this agent.

    Raises:
        StorageError: the database can't be written, or a file can't be renamed.
    """
    told: list[str] = []
    file, persona = folder / f"{name}.json", folder / f"{name}.md"
    try:
        found = _read(file)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        found = None
        told.append(f"{file} is damaged ({one_line(error)[:200]}), so {name!r} does not remember what is in it.")
    if found is not None:
        kind, memory, lives, steps = found
        if _give(ledger, name, kind, memory, lives, steps):
            kept = _aside(file)
            told.append(f"{name!r} remembers what was in {file}, which is {kept.name} now.")
        else:
            told.append(f"{file} is left as it is: the agent {name!r} remembers something else with {kind!r} already.")
    try:
        text = persona.read_text(encoding="utf-8").strip() if persona.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        told.append(f"{persona} can't be read ({one_line(error)[:200]}), so {name!r} is not who it says.")
        return told
    if text and len(text) > LONGEST:
        told.append(f"{persona} is left as it is: a persona has at most {LONGEST} characters.")
    elif text is not None:
        with ledger.change() as book:
            if not book.register(name)[0].persona and text:
                set_persona(book, name, text)
        _aside(persona)
    return told


def _give(ledger: NexusStore, name: str, kind: str, memory: SavedMemory, lives: int, steps: int) -> bool:
    """Give an agent a memory; return whether it has that one now."""
    with ledger.change() as book:
        agent, _ = book.register(name)
        saved = SavedMemories.from_bytes(book.memories(name))
        known = saved.of(kind)
        if known.snapshot:
            return known.snapshot == memory.snapshot
        book.save_memories(name, saved.having(kind, memory, lives=lives).to_bytes())
        book.update_agent(name, lifetime_steps=agent.lifetime_steps + steps)
    return True


def _read(path: Path) -> tuple[str, SavedMemory, int, int] | None:
    """Return a file's kind of memory, the memory, the number of its last run and all decisions; None for no file."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    if len(data) > LARGEST:
        raise ValueError(f"it exceeds {LARGEST} bytes")
    found = json.loads(data)
    if not isinstance(found, dict) or found.get("format") != "wsap-mind" or found["version"] != 1:
        raise ValueError("it is no memory that an earlier version wrote")
    lives: list[Mapping[str, Any]] = found["lives"]
    runs = {str(life["run"]): int(life["steps"]) for life in lives if life["saved"]}
    memory = SavedMemory(
        base64.b64decode(found["memory"], validate=True),
        dict(found["options"]),
        int(found["revision"]),
        str(found["saved_by"]),
        runs,
    )
    return str(found["kind"]), memory, max((int(life["number"]) for life in lives), default=0), sum(runs.values())


def _aside(path: Path) -> Path:
    kept = path.with_name(path.name + TAKEN)
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}{TAKEN}-{number}")
    try:
        path.rename(kept)
    except OSError as error:
        raise StorageError(f"The file {path} can't be renamed: {error.strerror or error}.") from None
    return kept
