"""Memories that an episode begins with, each a file named by its hash."""

from __future__ import annotations

import base64
import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wsap_core.errors import UsageError
from wsap_core.seams.memory import LESSON, AgentMemory, Browsable, Recollection
from wsap_core.seams.services import RunReader

Edit = Literal["whole", "placebo", "raw"]
"""What is taken of a memory: all; as many items of the same length with their words permuted, so that they say nothing;
or what was lived through, without the lessons."""
MOST = 1_000_000
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True)
class Brought:
    """What an agent brings into an episode."""

    path: str = ""
    """The file of a memory; empty for none."""
    edit: Edit = "whole"


def preparing(brought: Brought) -> Callable[[str, AgentMemory], None]:
    """Return what puts a memory into an agent's before an episode.

    The returned function raises UsageError for a memory that can't be looked through, where only a part is taken, and
    SnapshotError for one of another kind.
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
        for item, text in zip(items, permuted(texts) if edit == "placebo" else texts, strict=True):
            memory.note(text, kind=item.kind, world=item.world, step=item.step)

    return prepare


def items_of(memory: AgentMemory) -> list[Recollection]:
    """Return everything that is remembered, oldest first.

    Raises:
        UsageError: the memory can't be looked through.
    """
    if not isinstance(memory, Browsable):
        raise UsageError(
            f"A memory of the kind {type(memory).__name__} can't be looked through, so that nothing can be put in its "
            "place; use another kind, such as memory=fulltext."
        )
    return list(reversed(memory.browse(most=MOST)))


def permuted(texts: list[str]) -> list[str]:
    """Return texts in which every word of four letters or more is another one of them, the same one everywhere.

    Each word is exchanged for one as long as it where there is one; which, follows from the texts alone.
    """
    words = sorted({word for text in texts for word in _WORD.findall(text)})
    rng = random.Random(hashlib.sha256("\0".join(texts).encode()).digest())
    shuffled = [*words]
    rng.shuffle(shuffled)
    shuffled.sort(key=len)  # a stable sort: neighbours are about as long as each other
    places = {word: i for i, word in enumerate(shuffled)}
    return [_WORD.sub(lambda found: shuffled[(places[found[0]] + 1) % len(shuffled)], text) for text in texts]


def kept_memory(runs: RunReader, run: str) -> bytes:
    """Return what an agent remembered when a run was over; empty for one without a memory."""
    ends = [event["body"] for event in runs.events(run, "mind") if event["body"].get("end")]
    return base64.b64decode(ends[-1]["memory"]) if ends else b""


def stored(folder: Path, memory: bytes) -> Path:
    """Return the file of a memory, which is written if it is not there.

    Raises:
        UsageError: it can't be written.
    """
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
