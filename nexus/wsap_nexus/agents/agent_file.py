"""The file format of an exported agent.

One line of JSON (`{"wsap-agent": 1, "agent": ..., "size": ..., "sha256": ...}`), then JSON compressed with
zstd. It contains no paths, and nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import zstandard
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from wsap_core.errors import ProtocolVersionError, StorageError, WireError
from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import error_line, single_line
from wsap_nexus.store.entities import AGENT_ID

FORMAT = 1
"""The version of the file; newer ones are refused."""

LARGEST_FILE = 64 << 20
"""Maximum bytes of a file."""

LARGEST = 256 << 20
"""Maximum bytes of its decompressed content."""

_HEADER = 4096
_NAME = "wsap-agent"

_Short = Annotated[str, Field(max_length=200)]
_Count = Annotated[int, Field(ge=0, le=2**53)]
_Level = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, from_attributes=True)


class Identity(_Strict):
    """The agent itself."""

    id: str = Field(pattern=AGENT_ID)
    name: _Short
    created: str = Field(max_length=40)
    persona: str = Field(max_length=10_000)
    core_memories: list[Annotated[str, Field(max_length=10_000)]] = Field(max_length=10_000, strict=False)
    strategies: list[Annotated[str, Field(max_length=10_000)]] = Field(max_length=10_000, strict=False)
    lifetime_steps: int = Field(ge=0, lt=2**31)
    playtime: float = Field(ge=0, allow_inf_nan=False)


class PackedPolicy(_Strict):
    """The decider in one game."""

    agent: _Short
    options: dict[str, JsonValue] = Field(max_length=1000)


class Evidence(_Strict):
    """The evidence of a skill."""

    domain: _Short
    game: _Short
    source: _Short
    times: _Count
    gained: float = Field(ge=0, le=1, allow_inf_nan=False)


class Achieved(_Strict):
    """An achievement."""

    game: _Short
    name: _Short
    first: str = Field(max_length=40)
    times: _Count


class PackedGoal(_Strict):
    """A meta-goal; the counts of an active one are not exported."""

    id: _Short
    state: Literal["active", "reached", "abandoned"]
    data: dict[str, JsonValue] = Field(max_length=100)


class PackedEntry(_Strict):
    """An entry of the diary."""

    written: str = Field(max_length=40)
    """ISO 8601, UTC."""
    game: _Short | None
    text: str = Field(max_length=10_000)
    own_words: bool


class Left(_Strict):
    """What is not exported."""

    bodies: _Count
    items: _Count


class Package(_Strict):
    """The content of the file."""

    agent: Identity
    policies: dict[str, PackedPolicy] = Field(max_length=1000)
    skills: dict[_Short, _Level] = Field(max_length=1000)
    evidence: list[Evidence] = Field(max_length=1_000_000)
    achievements: list[Achieved] = Field(max_length=1_000_000)
    items: list[dict[str, JsonValue]] = Field(default=[], max_length=100_000)
    """Ignored: items of an agent in files of an earlier version."""
    goals: list[PackedGoal] = Field(max_length=10_000)
    diary: list[PackedEntry] = Field(max_length=1_000_000)
    mind: str | None
    """Its memories, in base64."""
    move: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    """Ignored: the id of a move in files of an earlier version."""
    left: Left


def write_package(path: Path, package: Package) -> None:
    """Write the file atomically, readable by its owner alone; StorageError if it can't be written."""
    body = dumps(package.model_dump()).encode()
    digest = hashlib.sha256(body).hexdigest()
    header = {_NAME: FORMAT, "agent": package.agent.id, "size": len(body), "sha256": digest}
    data = json.dumps(header).encode("ascii") + b"\n" + zstandard.compress(body, 9)
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(f"The file {path} can't be written: {error.strerror or error}.") from None


def read_package(path: Path) -> Package:
    """Return the content of a file.

    Raises:
        WireError: it is not an agent's file, damaged, or too large.
        ProtocolVersionError: a newer version of WSAP wrote it.
        StorageError: it can't be read.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(_HEADER)
            packed = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise StorageError(f"The file {path} can't be read: {error.strerror or error}.") from None
    header = _header(path, line)
    if len(packed) > LARGEST_FILE or header["size"] > LARGEST:
        raise WireError(f"The file {path} is larger than the limit for agents ({LARGEST_FILE >> 20} MiB).")
    body = _unpacked(path, packed, header["size"])
    if hashlib.sha256(body).hexdigest() != header["sha256"]:
        raise WireError(f"The file {path} is damaged: its checksum is wrong; use another copy.")
    try:
        return Package.model_validate(json.loads(body))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = single_line(".".join(str(part) for part in first["loc"]))[:80]
        raise WireError(f"The file {path} is not a valid agent file: {where}: {first['msg']}.") from None
    except (ValueError, RecursionError):
        raise WireError(f"The file {path} is not a valid agent file: it contains no JSON.") from None


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
        version, size, digest = header[_NAME], header["size"], header["sha256"]
        fine = all(type(n) is int and n >= 0 for n in (version, size)) and isinstance(digest, str)
    except (ValueError, KeyError, TypeError, RecursionError):
        fine = False
    if not fine:
        raise WireError(f"The file {path} is not an agent file; wsap nexus agents export writes one.")
    if version > FORMAT:
        raise ProtocolVersionError(
            f"The file {path} was written by a newer version of WSAP (its version is {version}, this one reads up to "
            f"{FORMAT}); update with: pip install --upgrade wsap-nexus"
        )
    return dict(header)


def _unpacked(path: Path, packed: bytes, size: int) -> bytes:
    try:
        # Limited by the header: a small file can decompress to any size.
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed) as reader:
            body = reader.read(size + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise WireError(f"The file {path} is damaged ({error_line(error, 80)}); use another copy.") from None
    if len(body) != size:
        raise WireError(f"The file {path} is damaged: its length is wrong; use another copy.")
    return body
