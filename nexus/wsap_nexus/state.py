"""The state file of a running nexus, beside its database and readable by its owner alone.

It is written once the nexus accepts requests, and removed when it stops. After a SIGKILL it remains, but is ignored: it
names a process that does not exist or started at another time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from wsap_core.errors import StorageReadOnlyError
from wsap_core.paths import home
from wsap_nexus.paths import is_url

TOKEN_NAME = "nexus.token"  # noqa: S105 the name of a file
"""The file in the home folder with the owner's token."""

_LARGEST = 65536


@dataclass(frozen=True)
class Running:
    """A running nexus."""

    pid: int
    born: str
    """The start time of the process as the system reports it; empty if it does not."""
    url: str
    """The address of the dashboard and the wire API, with a slash at the end."""
    started: float
    """Seconds since 1970."""
    database: str
    """Path or URL, without a password."""
    model: str | None = None
    """The model of new agents."""
    keep_days: float | None = None
    """Days after which recordings are pruned; None for never."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the agent of `model`. Any: JSON."""

    @property
    def alive(self) -> bool:
        """Whether that process still runs."""
        return _exists(self.pid) and birth(self.pid) == self.born


def state_file(database: str, environ: Mapping[str, str]) -> Path:
    """Return the state file of a database: beside it, or in the home folder for a server's database.

    It is the same with or without the driver and the password in a server's URL, however the URL is escaped.
    """
    if not is_url(database):
        return Path(f"{database}.nexus.json")
    if database.startswith("sqlite:///"):
        return Path(f"{Path(database.removeprefix('sqlite:///')).absolute()}.nexus.json")
    return home(environ) / f"nexus-{hashlib.sha256(_plain(database).encode()).hexdigest()[:12]}.json"


def _plain(url: str) -> str:
    try:
        parsed = urlsplit(url)
    except ValueError:
        return url  # whoever opens it says what is wrong
    person, at, address = parsed.netloc.rpartition("@")
    person, dialect = unquote(person.partition(":")[0]), parsed.scheme.partition("+")[0]
    # A path in the query (`host=/run/postgresql`) can be written with or without escapes.
    query = urlencode(sorted(parse_qsl(parsed.query, keep_blank_values=True)))
    plain = parsed._replace(scheme=dialect, netloc=f"{person}{at}{address}", path=unquote(parsed.path), query=query)
    return urlunsplit(plain)


def token_file(environ: Mapping[str, str]) -> Path:
    """Return the file with the owner's token."""
    return home(environ) / TOKEN_NAME


def write(path: Path, running: Running) -> None:
    """Write the state file; StorageReadOnlyError if the file can't be written."""
    partial = path.with_name(path.name + ".new")
    try:
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(running), file)
        partial.replace(path)
    except OSError as error:
        raise StorageReadOnlyError(
            f"The file {path} can't be written ({error.strerror or error}); change the permissions of its folder."
        ) from None


def read(path: Path) -> Running | None:
    """Return the running nexus of a state file; None if there is none."""
    found = _written(path)
    return found if found is not None and found.alive else None


def _written(path: Path) -> Running | None:
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return Running(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def remove(path: Path, running: Running) -> None:
    """Remove the state file of a nexus, unless another one has written its own there since."""
    if _written(path) == running:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def wait_for_end(running: Running, seconds: float) -> bool:
    """Return whether a nexus ends within some seconds, waiting for it."""
    end = time.monotonic() + seconds
    while running.alive:
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)
    return True


def birth(pid: int) -> str:
    """Return the start time of a process in system ticks, which distinguishes reused process ids; empty if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    # The program's name is in brackets and may contain anything; the 22nd field is the 20th after it.
    fields = stat.rpartition(")")[2].split()
    # A process that is killed is called ended while other threads of it still run, and hold its files and locks.
    if len(fields) < 20 or (fields[0] in ("Z", "X") and int(fields[17]) <= 1):
        return "ended"
    return fields[19]


def _exists(pid: int) -> bool:
    if pid <= 0:
        return False
    if os.name == "nt":
        return True  # os.kill(pid, 0) would end the process there
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
