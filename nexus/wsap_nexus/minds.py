"""Minds: what agents remember from run to run, each in a file of its own.

A `Minds` is a folder and nothing else, so that whoever knows a place and a name can keep a mind
there. A mind is read by anybody, and written by whoever holds it: one process at a time. A file is
replaced as a whole or not at all, whenever the machine stops; only its owner can read it.
"""

from __future__ import annotations

import base64
import binascii
import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from wsap_core.errors import (
    ConfigError,
    NotADatabaseError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageReadOnlyError,
    StorageVersionError,
    UnknownNameError,
    UsageError,
)
from wsap_core.textfile import read_text
from wsap_core.untrusted import one_line

VERSION = 1
LIVES = 1000
"""Most lives that a mind lists; the oldest go first."""
LARGEST = 256 * 1024 * 1024
"""Most bytes of a file that is read."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})
"""Names that Windows takes for devices."""


@dataclass(frozen=True)
class Life:
    """A run that a mind took part in."""

    number: int
    """Counts the mind's runs, from 1."""
    run: str
    """The run's id."""
    game: str
    seat: str = ""
    began: str = ""
    """ISO 8601, UTC."""
    saved: str = ""
    """When what it remembered was saved last; empty if it never was."""
    steps: int = 0
    """Decisions until then."""

    @property
    def label(self) -> str:
        """How memories of it are marked: "run 3"."""
        return f"run {self.number}"


@dataclass(frozen=True)
class Mind:
    """What an agent remembers, and from which runs."""

    name: str
    kind: str
    """The kind of memory."""
    memory: bytes = b""
    """The memory's snapshot; empty before anything was saved."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The memory's options."""
    lives: tuple[Life, ...] = ()
    """Oldest first."""
    revision: int = 0
    """Counts how often its memory was saved."""
    saved_by: str = ""
    """The run that saved its memory last."""

    def life_in(self, run: str, seat: str) -> Life | None:
        """Return its life in a seat of a run, or None."""
        return next((life for life in self.lives if (life.run, life.seat) == (run, seat)), None)

    def with_life(self, life: Life) -> Mind:
        """Return the mind with a life added, or in place of what it had of the same seat and run."""
        others = self.without_life(life).lives
        return replace(self, lives=tuple(sorted((*others, life), key=lambda one: one.number)[-LIVES:]))

    def without_life(self, life: Life) -> Mind:
        """Return the mind without its life in the same seat of the same run."""
        return replace(self, lives=tuple(o for o in self.lives if (o.run, o.seat) != (life.run, life.seat)))

    def next_number(self) -> int:
        """Return the number of its next life."""
        return max((life.number for life in self.lives), default=0) + 1


def check_name(name: str) -> str:
    """Return the name of a mind, if it is one.

    Raises:
        UsageError: it is none; the message says what one is.
    """
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise UsageError(
            f"{one_line(name)[:60]!r} is no name for a mind: take 1 to 40 of a-z, 0-9, - and _, "
            "with a letter or digit first and last."
        )
    return name


class HeldMind:
    """A mind that this process alone may write; made by `Minds.hold`."""

    def __init__(self, minds: Minds, name: str) -> None:
        self._minds = minds
        self.name = name

    def read(self) -> Mind | None:
        """Return the mind as it is in its file, or None if there is no file yet.

        Raises:
            StorageError: it can't be read.
        """
        return self._minds.find(self.name)

    def write(self, mind: Mind) -> None:
        """Put the mind in its file, in place of what was there; all of it or nothing.

        Raises:
            StorageError: it can't be written; what was there is still there.
        """
        write_whole(self._minds.path(self.name), _encoded(replace(mind, name=self.name)))

    def remove(self) -> None:
        """Delete the mind's file, if there is one; what a person wrote about it stays."""
        with _told(f"The mind {self.name!r}"):
            self._minds.path(self.name).unlink(missing_ok=True)


class Minds:
    """The minds in a folder.

    Args:
        place: the folder; made, for its owner alone, when a mind is first held.
    """

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)

    def path(self, name: str) -> Path:
        """Return the file of a mind.

        Raises:
            UsageError: that is no name for a mind.
        """
        return self.place / f"{check_name(name)}.json"

    def names(self) -> list[str]:
        """Return the names of all minds, sorted.

        Raises:
            StorageError: the folder can't be read.
        """
        with _told("The folder of minds"):
            files = sorted(path.name for path in self.place.glob("*.json")) if self.place.is_dir() else []
        names = [name.removesuffix(".json") for name in files]
        return [name for name in names if _NAME.fullmatch(name) and name not in _RESERVED]

    def find(self, name: str) -> Mind | None:
        """Return a mind, or None if there is none of that name.

        Raises:
            UsageError: that is no name for a mind.
            StorageError: it can't be read.
        """
        path = self.path(name)
        with _told(f"The mind {name!r}"):
            try:
                with path.open("rb") as file:
                    data = file.read(LARGEST + 1)
            except FileNotFoundError:
                return None
        return _decoded(name, data)

    def read(self, name: str) -> Mind:
        """Return a mind.

        Raises:
            UnknownNameError: there is none of that name.
            StorageError: it can't be read.
        """
        mind = self.find(name)
        if mind is None:
            raise UnknownNameError("mind", name, self.names(), hint="See them with: wsap minds")
        return mind

    def persona(self, name: str) -> str | None:
        """Return what a person wrote about who the mind is, in NAME.md beside its file; None for nothing.

        Raises:
            StorageError: it can't be read.
        """
        path = self.path(name).with_suffix(".md")
        with _told(f"The persona of the mind {name!r}"):
            if not path.exists():
                return None
            try:
                return read_text(path, f"The persona of the mind {name!r}").strip() or None
            except ConfigError as error:
                raise NotADatabaseError(str(error)) from None

    @contextmanager
    def hold(self, name: str) -> Iterator[HeldMind]:
        """Give a mind that nobody else can write within the block. It need not be there yet.

        The lock is the operating system's, so it ends with the process, however that ends.

        Raises:
            StorageLockedError: another run has it.
            StorageError: the folder can't be made or written.
        """
        from filelock import FileLock, Timeout  # deferred for weight: reading minds needs no lock

        path = self.path(name)
        with _told("The folder of minds"):
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The lock's file stays: were it deleted, somebody could hold it while another makes it anew.
        lock = FileLock(path.with_name(f".{name}.lock"), timeout=0, mode=0o600)
        with _told(f"The mind {name!r}"):
            try:
                lock.acquire()
            except Timeout:
                raise StorageLockedError(
                    f"The mind {name!r} is in another run just now; wait for that, or play with another mind."
                ) from None
        try:
            yield HeldMind(self, name)
        finally:
            lock.release()


def write_whole(path: Path, data: bytes) -> None:
    """Put data in a file, in place of what was there, readable by its owner alone; all of it or nothing.

    One writer at a time: the new file has a fixed name until it takes the old one's place, so that
    what a crash leaves of it is gone the next time.

    Raises:
        StorageError: it can't be written; what was there is still there.
    """
    fresh = path.with_name(f".{path.name}.new")
    with _told(f"The file {path.name!r}"):
        try:
            fresh.unlink(missing_ok=True)  # and never opened: it could be a link, or readable by others
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise
        with suppress(OSError):  # not every system lets folders be synced
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Tell in a sentence what the operating system says in its own words."""
    try:
        yield
    except OSError as error:
        said = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFullError(f"{what} can't be written: {said}. Make room, and try again.") from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageReadOnlyError(f"{what} can't be used: {said}. Its owner must be able to write it.") from None
        raise StorageError(f"{what} can't be used: {said}.") from None


def _encoded(mind: Mind) -> bytes:
    data = {
        "format": "wsap-mind",
        "version": VERSION,
        **asdict(mind),
        "memory": base64.b64encode(mind.memory).decode("ascii"),
    }
    return json.dumps(data, indent=1, sort_keys=True).encode() + b"\n"


def _decoded(name: str, data: bytes) -> Mind:
    try:
        if len(data) > LARGEST:
            raise ValueError(f"it exceeds {LARGEST} bytes")
        found = json.loads(data)
        if not isinstance(found, dict) or found.get("format") != "wsap-mind":
            raise NotADatabaseError(f"The file of the mind {name!r} is something else; move it away.")
        if not isinstance(found["version"], int) or found["version"] > VERSION:
            raise StorageVersionError(f"A newer WSAP wrote the mind {name!r}; upgrade with: pip install -U wsap-nexus")
        return _mind(name, found)
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise StorageError(
            f"The file of the mind {name!r} is damaged: {one_line(error)[:200]}. Put a copy of it back, or take "
            f"another name; `wsap minds remove {name}` deletes it."
        ) from None


def _mind(name: str, found: Mapping[str, Any]) -> Mind:
    # Any: data from a file, whose shape is not yet known.
    if not isinstance(found["options"], dict) or not isinstance(found["lives"], list):
        raise ValueError("options or lives are missing")
    return Mind(
        name,
        _text(found["kind"]),
        base64.b64decode(_text(found["memory"]), validate=True),
        found["options"],
        tuple(_life(item) for item in found["lives"]),
        _whole(found["revision"]),
        _text(found["saved_by"]),
    )


def _life(item: Mapping[str, Any]) -> Life:
    texts = {key: _text(item[key]) for key in ("run", "game", "seat", "began", "saved")}
    return Life(number=_whole(item["number"]), steps=_whole(item["steps"]), **texts)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is something else")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a number is something else")
    return value
