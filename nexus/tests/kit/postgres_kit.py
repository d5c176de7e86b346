"""A PostgreSQL server of the tests' own, which can be stopped, killed and started again, and databases on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from wsap_nexus.store.database import Database

PATIENCE = 300.0
"""Seconds to wait for the server; never waited for in full unless it fails."""

_BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)), None)
_FOUND = shutil.which("initdb") or (str(_BINARIES.with_name("initdb")) if _BINARIES else None)
INITDB = None if _FOUND is None else Path(_FOUND)
"""The program that makes a server's folder; None if PostgreSQL's server is not installed."""

_TEMPLATE = "wsap_template"
_OPTIONS = "-c shared_buffers=16MB -c max_connections=200 -c timezone=Asia/Kathmandu"
# A time zone that no code may depend on.


class Server:
    """A PostgreSQL server that listens on a socket in its folder and nowhere else.

    PostgreSQL refuses to run as root, and a socket's path may have about 100 characters only, so the folder is neither
    pytest's nor root's.
    """

    def __init__(self, *, durable: bool = False) -> None:
        if INITDB is None:
            raise FileNotFoundError("PostgreSQL's server is not installed; install it with: apt-get install postgresql")
        self.folder = Path(tempfile.mkdtemp(prefix="wsap-pg-"))
        self._user: int | None = None
        if os.geteuid() == 0:
            self._user = 65534
            os.chown(self.folder, self._user, -1)
        self._made = False
        self._options = _OPTIONS + ("" if durable else " -c fsync=off")
        self._run("initdb", "-U", "wsap", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        # By files takes half the processor time; before version 15 there was no other way, nor a word for it.
        version = int((self.folder / "data" / "PG_VERSION").read_text(encoding="ascii"))
        self._copying = " STRATEGY FILE_COPY" if version >= 15 else ""
        self.start()

    def url(self, database: str = "postgres") -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://wsap@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start it; it answers when this returns."""
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' {self._options}"
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast` ends its connections and closes it in good order, `immediate` is as a crash."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again."""
        self.stop(mode)
        self.start()

    def freeze(self) -> None:
        """Let it answer nothing any more, as a machine that hangs; connections to it stay."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """End a `freeze`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        own = [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]
        for pid in own:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def new_database(self, *, empty: bool = False) -> str:
        """Return the URL of a new database, with the tables of WSAP unless `empty`."""
        if not empty and not self._made:
            self._make_template()
        name = f"own_{uuid.uuid4().hex}"
        self.admin(f"CREATE DATABASE {name}" + ("" if empty else f" TEMPLATE {_TEMPLATE}{self._copying}"))
        return self.url(name)

    def drop(self, url: str) -> None:
        """Delete a database made by `new_database`, whoever is connected to it."""
        self.admin(f"DROP DATABASE IF EXISTS {url.partition('@/')[2].partition('?')[0]} WITH (FORCE)")

    def admin(self, statement: str) -> None:
        """Execute a statement outside of transactions, again and again while the server or the template is busy."""
        engine = create_engine(self.url().replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
        end = time.monotonic() + PATIENCE
        try:
            while True:
                try:
                    with engine.connect() as connection:
                        connection.execute(text(statement))
                    return
                except OperationalError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)
        finally:
            engine.dispose()

    def close(self) -> None:
        """Stop it if it runs, and delete its folder."""
        with suppress(FileNotFoundError):
            self.thaw()
        self._run("pg_ctl", "-m", "immediate", "stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_template(self) -> None:
        self.admin(f"CREATE DATABASE {_TEMPLATE}")
        Database.open(self.url(_TEMPLATE)).close()
        self._made = True

    def _run(self, tool: str, *words: str, check: bool = True) -> None:
        assert INITDB is not None
        command = [str(INITDB.with_name(tool)), "-D", str(self.folder / "data"), *words]
        # Its output goes to a file: a server that was started keeps the streams of pg_ctl open.
        with (self.folder / "tools.log").open("ab") as log:
            subprocess.run(
                command, check=check, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                user=self._user, cwd=self.folder, timeout=PATIENCE,
            )  # fmt: skip


@contextmanager
def private_server(*, durable: bool = False, keep: bool = False) -> Iterator[Server]:
    """Give a server of one's own; gone at the end of the block, or only stopped with `keep`.

    `durable`: commits wait for the disk.
    """
    server = Server(durable=durable)
    try:
        yield server
    finally:
        if keep:
            server.stop()
        else:
            server.close()
