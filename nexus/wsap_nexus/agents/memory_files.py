"""Import of the memory files of earlier versions, once, as agents of the database.

`wsap play --mind ada` stored the memory in `minds/ada.json` in the data folder, and the persona in `minds/ada.md`.
The first run as ada imports both into its database and renames the files.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsap_core.errors import StorageError
from wsap_core.untrusted import error_line
from wsap_nexus.agents.identity import LONGEST, set_persona
from wsap_nexus.agents.memory import SavedMemories, SavedMemory
from wsap_nexus.store.nexus_store import NexusStore

LARGEST = 256 * 1024 * 1024
"""The maximum size of a file."""
TAKEN = ".taken-over"
"""The suffix of imported files."""


def take_over(folder: Path, name: str, nexus_store: NexusStore) -> list[str]:
    """Import the files of a named memory into the agent of that name, and return messages about it.

    A damaged file, or one that would replace a memory of the agent, is not changed. An interrupted import continues
    the next time.

    Args:
        name: the agent, whose id has been checked.
        nexus_store: no other process writes this agent.

    Raises:
        StorageError: the database can't be written, or a file can't be renamed.
    """
    told: list[str] = []
    file, persona = folder / f"{name}.json", folder / f"{name}.md"
    try:
        found = _read(file)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        found = None
        told.append(f"{file} is damaged ({error_line(error, 200)}), so {name!r} does not remember what is in it.")
    if found is not None:
        kind, memory, lives, steps = found
        if _give(nexus_store, name, kind, memory, lives, steps):
            kept = _aside(file)
            told.append(f"{name!r} remembers what was in {file}, which is {kept.name} now.")
        else:
            told.append(f"{file} is left as it is: the agent {name!r} remembers something else with {kind!r} already.")
    try:
        text = persona.read_text(encoding="utf-8").strip() if persona.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        told.append(f"{persona} can't be read ({error_line(error, 200)}), so {name!r} is not who it says.")
        return told
    if text and len(text) > LONGEST:
        told.append(f"{persona} is left as it is: a persona has at most {LONGEST} characters.")
    elif text is not None:
        with nexus_store.change() as tx:
            if not tx.register(name)[0].persona and text:
                set_persona(tx, name, text)
        _aside(persona)
    return told


def _give(nexus_store: NexusStore, name: str, kind: str, memory: SavedMemory, lives: int, steps: int) -> bool:
    with nexus_store.change() as tx:
        agent, _ = tx.register(name)
        saved = SavedMemories.from_bytes(tx.memories(name))
        known = saved.of(kind)
        if known.snapshot:
            return known.snapshot == memory.snapshot
        tx.save_memories(name, saved.having(kind, memory, lives=lives).to_bytes())
        tx.update_agent(name, lifetime_steps=agent.lifetime_steps + steps)
    return True


def _read(path: Path) -> tuple[str, SavedMemory, int, int] | None:
    # Kind, memory, number of the last run, and all decisions.
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
