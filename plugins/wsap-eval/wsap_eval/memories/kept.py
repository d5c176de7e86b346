"""Initial memories of episodes, stored as files named by their hash."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wsap_core.errors import UsageError
from wsap_core.seams.memory import LESSON, AgentMemory, Browsable, Recollection
from wsap_core.seams.services import RunReader
from wsap_eval.memories.scrambling import scrambled

Edit = Literal["whole", "placebo", "raw"]
"""How a memory is changed: not at all; scrambled, so that its items have the same length but no content; or without
its lessons."""
MOST = 1_000_000
LARGEST = 1 << 28
"""Bytes of a memory, decompressed, that are looked through for numbers."""


@dataclass(frozen=True)
class Brought:
    """An agent's initial memory in an episode."""

    path: str = ""
    """The memory's file; empty for an empty memory."""
    edit: Edit = "whole"


def preparing(brought: Brought) -> Callable[[str, AgentMemory], None]:
    """Return a function that loads a memory into an agent's memory before an episode.

    It raises UsageError if the memory has to be edited but can't be listed; SnapshotError if it is of another kind.
    """

    def prepare(seat: str, memory: AgentMemory) -> None:
        edit = brought.edit
        if not brought.path:
            return
        empty = memory.snapshot()
        memory.restore(Path(brought.path).read_bytes())
        if edit == "whole":
            return
        items = items_of(memory)
        memory.restore(empty)
        if edit == "raw":
            items = [item for item in items if item.kind != LESSON]
        texts = [item.text for item in items]
        for item, text in zip(items, scrambled(texts) if edit == "placebo" else texts, strict=True):
            memory.note(text, kind=item.kind, world=item.world, step=item.step)

    return prepare


def items_of(memory: AgentMemory) -> list[Recollection]:
    """Return all items of a memory, oldest first. Raises UsageError if they can't be listed."""
    if not isinstance(memory, Browsable):
        raise UsageError(
            f"The items of a {type(memory).__name__} memory can't be listed; use another kind, such as memory=fulltext."
        )
    return list(reversed(memory.browse(most=MOST)))


def numbers_in(memory: bytes) -> set[int]:
    """Return the numbers of at least five digits in a stored memory, also in a compressed one."""
    texts = [memory]
    for start in {0, memory.find(b"\n") + 1}:
        with suppress(zlib.error):
            texts.append(zlib.decompressobj(wbits=47).decompress(memory[start:], LARGEST))
    return {int(digits) for text in texts for digits in re.findall(rb"\d{5,20}", text)}


def kept_memory(runs: RunReader, run: str) -> bytes:
    """Return an agent's memory at the end of a run; empty if it has none."""
    ends = [event["body"] for event in runs.events(run, "mind") if event["body"].get("end")]
    return base64.b64decode(ends[-1]["memory"]) if ends else b""


def stored(folder: Path, memory: bytes) -> Path:
    """Return the file of a memory, writing it if it is missing. Raises UsageError if it can't be written."""
    path = folder / f"{hashlib.sha256(memory).hexdigest()[:32]}.memory"
    if not path.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            partial.write_bytes(memory)
            partial.replace(path)
        except OSError as error:
            raise UsageError(f"{str(path)!r} can't be written: {error.strerror or error}.") from error
    return path
