"""The file format of an exported agent.

One line of JSON (`{"wsap-agent": 1, "agent": ..., "size": ..., "sha256": ...}`), then JSON compressed with
zstd. It contains no paths, and nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import zstandard
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from wsap_core.errors import ProtocolVersionError, StorageError, UsageError, WireError
from wsap_core.installing import install_line
from wsap_core.protocol.wire import dumps
from wsap_core.textfile import refuse_pipe
from wsap_core.untrusted import error_line, single_line
from wsap_nexus.store.entities import AGENT_ID

FORMAT = 1
"""The version of the file; newer ones are refused."""

LARGEST_FILE = 64 << 20
"""Maximum bytes of a file."""

LARGEST = 64 << 20
"""Maximum bytes of its decompressed content."""

MOST_ENTRIES = 200_000
"""Maximum entries of its diary; an export leaves out older ones."""

_MOST_OBJECTS, _MOST_VALUES = 600_000, 4_000_000
# The brackets and commas in the content: a few bytes of JSON can take a hundred times as much memory.

_HEADER = 4096
_NAME = "wsap-agent"


def _moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("not a time in the form of ISO 8601") from None
    return text


_Time = Annotated[str, Field(max_length=40), AfterValidator(_moment)]
_Short = Annotated[str, Field(max_length=200)]
_Count = Annotated[int, Field(ge=0, le=2**53)]
_Level = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, from_attributes=True)


class Identity(_Strict):
    """The agent itself."""

    id: str = Field(pattern=AGENT_ID)
    name: _Short
    created: _Time
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
    first: _Time
    times: _Count


class PackedGoal(_Strict):
    """A meta-goal; the counts of an active one are not exported."""

    id: _Short
    state: Literal["active", "reached", "abandoned"]
    data: dict[str, JsonValue] = Field(max_length=100)


class PackedEntry(_Strict):
    """An entry of the diary."""

    written: _Time
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
    evidence: list[Evidence] = Field(max_length=100_000)
    achievements: list[Achieved] = Field(max_length=100_000)
    goals: list[PackedGoal] = Field(max_length=1000)
    diary: list[PackedEntry] = Field(max_length=MOST_ENTRIES)
    mind: str | None
    """Its memories, in base64."""
    left: Left

    @model_validator(mode="after")
    def _has_each_once(self) -> Package:
        for what, keys in (
            ("evidence", [(row.domain, row.game, row.source) for row in self.evidence]),
            ("achievements", [(row.game, row.name) for row in self.achievements]),
            ("goals", [(goal.id,) for goal in self.goals]),
        ):
            seen: set[tuple[str, ...]] = set()
            for key in keys:
                if key in seen:
                    raise ValueError(f"the {what} contain {', '.join(map(repr, key))[:200]} twice")
                seen.add(key)
        return self


def write_package(path: Path, package: Package) -> int:
    """Write the file atomically, readable by its owner alone, and return the number of diary entries in it.

    The oldest ones are left out if the content would be too large to be imported.

    Raises:
        StorageError: it can't be written.
        UsageError: the agent is too large even without its diary.
    """
    content = package.model_dump()
    while len(body := dumps(content).encode()) > LARGEST or not _is_small(body):
        if not content["diary"]:
            raise UsageError(
                f"The agent {package.agent.id!r} is too large for a file ({len(body) >> 20} MiB; the limit is "
                f"{LARGEST >> 20} MiB); delete some of its memories."
            )
        content["diary"] = content["diary"][(len(content["diary"]) + 1) // 2 :]
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
    return len(content["diary"])


def read_package(path: Path) -> Package:
    """Return the content of a file.

    Raises:
        WireError: it is not an agent's file, damaged, or too large.
        ProtocolVersionError: a newer version of WSAP wrote it.
        StorageError: it can't be read.
    """
    try:
        refuse_pipe(path)
        with path.open("rb") as file:
            line = file.readline(_HEADER)
            packed = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise StorageError(f"The file {path} can't be read: {error.strerror or error}.") from None
    header = _header(path, line)
    if len(packed) > LARGEST_FILE or header["size"] > LARGEST:
        raise WireError(f"The file {path} is larger than the limit for agents ({LARGEST >> 20} MiB).")
    body = _unpacked(path, packed, header["size"])
    if hashlib.sha256(body).hexdigest() != header["sha256"]:
        raise WireError(f"The file {path} is damaged: its checksum is wrong; use another copy.")
    if not _is_small(body):
        raise WireError(
            f"The file {path} contains more values than an agent may have ({_MOST_OBJECTS:,} objects and lists, "
            f"{_MOST_VALUES:,} values)."
        )
    try:
        return Package.model_validate(json.loads(body, object_pairs_hook=_object))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = single_line(".".join(str(part) for part in first["loc"]))[:80]
        said = single_line(first["msg"]).removeprefix("Value error, ")[:300]
        raise WireError(f"The file {path} is not a valid agent file: {where}{': ' if where else ''}{said}.") from None
    except _DoubledKeyError as error:
        raise WireError(f"The file {path} is not a valid agent file: it has the key {error} twice.") from None
    except (ValueError, RecursionError):
        raise WireError(f"The file {path} is not a valid agent file: it contains no JSON.") from None


class _DoubledKeyError(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _DoubledKeyError(repr(single_line(twice)[:80]))
    return found


def _is_small(body: bytes) -> bool:
    return body.count(b"{") + body.count(b"[") <= _MOST_OBJECTS and body.count(b",") <= _MOST_VALUES


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
            f"{FORMAT}); update with: {install_line('wsap-nexus', newer=True)}"
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
