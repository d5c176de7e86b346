"""The SQLite database of the full-text memory: rows, an index of their words, and moments."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wsap_core.errors import (
    MissingServiceError,
    NotADatabaseError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageReadOnlyError,
    StorageVersionError,
)
from wsap_core.installing import install_line
from wsap_core.protocol.values import JsonValue
from wsap_llm.memory.cells import Cell
from wsap_llm.memory.words import words

APPLICATION = 0x57534D31
"""SQLite's application_id of these files."""
VERSION = 3
"""The version of a file; there was no release with an earlier one."""
WORDS, MATCHES = 16, 1_000
"""Maximum number of a query's words that are searched, and of their occurrences (the rarest word always counts)."""

_TABLES = """
CREATE TABLE IF NOT EXISTS lived (
    moment INTEGER PRIMARY KEY, text TEXT NOT NULL, world TEXT NOT NULL, step INTEGER, kind TEXT NOT NULL,
    importance REAL NOT NULL, run TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS lived_by_importance ON lived (importance DESC, moment DESC);
"""
# The index contains `memory.words`, letters and digits only, so that its tokenizer can't differ from queries.
_INDEX = """
CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5(words, content='', tokenize='unicode61 remove_diacritics 0');
CREATE VIRTUAL TABLE IF NOT EXISTS known USING fts5vocab(said, 'row');
"""
_COLUMNS = "moment, text, world, step, kind, importance, run"


@dataclass(frozen=True)
class Lived:
    """One row."""

    moment: int
    """The number of the entry, from 1."""
    cell: Cell


class Store:
    """A SQLite database of cells in a file, or in memory if `path` is None. A new file is readable by its owner alone.
    Raises MissingServiceError if this Python's SQLite has no FTS5, and StorageError if the file can't be used."""

    def __init__(
        self, path: str | None = None, *, connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    ) -> None:
        self._where = f"the memory in {path!r}" if path is not None else "the full-text memory"
        if path not in (None, ":memory:"):
            with contextlib.suppress(OSError):  # what is wrong with the path, SQLite tells
                os.close(os.open(str(path), os.O_RDWR | os.O_CREAT, 0o600))
        with self._told():
            # An agent is used by one thread at a time, but not always by the thread that created it.
            self._db = connect(path or ":memory:", isolation_level=None, check_same_thread=False, timeout=2.0)
        self._closing = weakref.finalize(self, self._db.close)
        try:
            with self._told():
                self._prepare(path)
        except BaseException:
            self.close()
            raise
        self.newest = self._one("SELECT max(moment) FROM lived")
        """The moment of the newest row, even if it was forgotten; 0 before the first."""
        self._count = self._one("SELECT count(*) FROM lived")

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Close the database."""
        self._closing()

    def add(self, cell: Cell) -> None:
        """Add a row as the newest."""
        with self._told(), self._transaction():
            self._insert(self.newest + 1, cell)
        self.newest += 1
        self._count += 1

    def matching(self, query: str, most: int) -> tuple[list[Lived], Mapping[str, int]]:
        """Return rows that share words with a text, by SQLite's BM25 and then newest first; and the words that were
        searched, each with its number of rows.

        Only the query's rarest words are searched, at most `WORDS` with `MATCHES` rows together: frequent words are not
        informative and would be slow.
        """
        asked = self._rarest(dict.fromkeys(words(query)))
        if not asked:
            return [], {}
        # Each word is quoted; words contain no quotes, but one would be doubled.
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in asked)
        with self._told():
            found = self._db.execute(
                "SELECT l.moment, l.text, l.world, l.step, l.kind, l.importance, l.run FROM "
                "(SELECT rowid, bm25(said) AS score FROM said WHERE said MATCH ? "
                " ORDER BY score, rowid DESC LIMIT ?) AS found "
                "JOIN lived AS l ON l.moment = found.rowid ORDER BY found.score, l.moment DESC",
                (match, most),
            ).fetchall()
        return [Lived(row[0], _cell(row)) for row in found], asked

    def newest_rows(self, most: int) -> list[Lived]:
        """Return the newest rows, newest first."""
        return self._rows("ORDER BY moment DESC LIMIT ?", most)

    def rows_of(self, kind: str, most: int) -> list[Lived]:
        """Return the newest rows of a kind, newest first."""
        return self._rows("WHERE kind = ? ORDER BY moment DESC LIMIT ?", kind, most)

    def weightiest_rows(self, most: int) -> list[Lived]:
        """Return the most important rows, then newest first."""
        return self._rows("ORDER BY importance DESC, moment DESC LIMIT ?", most)

    def all_rows(self) -> list[Lived]:
        """Return all rows, oldest first."""
        return self._rows("ORDER BY moment")

    def forget(self, count: int, worth: float) -> None:
        """Delete the rows with the smallest moment plus `worth` times their importance."""
        gone = self._rows("ORDER BY moment + importance * ?, moment LIMIT ?", worth, count)
        with self._told(), self._transaction():
            for row in gone:
                self._delete(row)
        self._count -= len(gone)

    def replace(self, rows: Sequence[Lived], newest: int) -> None:
        """Replace all rows, atomically; raise ValueError unless moments are positive, increasing and <= `newest`."""
        before = 0
        for row in rows:
            if not before < row.moment <= newest:
                raise ValueError("the moments do not increase")
            before = row.moment
        if not 0 <= newest < 2**62:
            raise ValueError("the newest moment is out of bounds")
        with self._told(), self._transaction():
            self._db.execute("DELETE FROM lived")
            self._db.execute("INSERT INTO said (said) VALUES ('delete-all')")
            for row in rows:
                self._insert(row.moment, row.cell)
        self.newest, self._count = newest, len(rows)

    def _prepare(self, path: str | None) -> None:
        run = self._db.execute
        if path is not None:
            known = run("PRAGMA application_id").fetchone()[0]
            tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables and known != APPLICATION:
                raise NotADatabaseError(f"{path!r} is not a memory database; choose another file for the memory.")
            version = run("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                upgrade = install_line("wsap-llm", newer=True)
                raise StorageVersionError(f"A newer WSAP wrote {self._where}; upgrade with: {upgrade}")
            if tables and version < VERSION:
                raise StorageVersionError(
                    f"WSAP wrote {self._where} before 0.1.0, its first release, and can't read it; choose another file."
                )
            run("PRAGMA journal_mode = WAL")  # survives a crash of the process without a sync for each step
            run("PRAGMA synchronous = NORMAL")
        run("PRAGMA trusted_schema = OFF")
        with self._transaction():
            # One by one: executescript would commit.
            for statement in filter(str.strip, (_TABLES + _INDEX).split(";")):
                run(statement)
            run(f"PRAGMA application_id = {APPLICATION}")
            run(f"PRAGMA user_version = {VERSION}")

    def _insert(self, moment: int, cell: Cell) -> None:
        run = self._db.execute
        row = (moment, cell.text, cell.world, cell.step, cell.kind, cell.importance, cell.run)
        run(f"INSERT INTO lived ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608  # constant
        run("INSERT INTO said (rowid, words) VALUES (?, ?)", (moment, _indexed(cell)))

    def _delete(self, row: Lived) -> None:
        run = self._db.execute
        run("INSERT INTO said (said, rowid, words) VALUES ('delete', ?, ?)", (row.moment, _indexed(row.cell)))
        run("DELETE FROM lived WHERE moment = ?", (row.moment,))

    def _rarest(self, asked: Iterable[str]) -> dict[str, int]:
        with self._told():
            found = [(self._db.execute("SELECT doc FROM known WHERE term = ?", (w,)).fetchone(), w) for w in asked]
        counted = sorted((row[0], place, word) for place, (row, word) in enumerate(found) if row is not None)
        matches = itertools.accumulate(count for count, _, _ in counted)
        few = sum(total <= MATCHES for total in matches)
        return {word: count for count, _, word in counted[: min(max(few, 1), WORDS)]}

    def _rows(self, which: str, *values: str | float) -> list[Lived]:
        statement = f"SELECT {_COLUMNS} FROM lived {which}"  # noqa: S608  # constants of this module
        with self._told():
            return [Lived(row[0], _cell(row)) for row in self._db.execute(statement, values).fetchall()]

    def _one(self, statement: str) -> int:
        with self._told():
            return int(self._db.execute(statement).fetchone()[0] or 0)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _explained(error, self._where) from error


def _explained(error: sqlite3.Error, where: str) -> MissingServiceError | StorageError:
    said = str(error)
    if "no such module: fts5" in said:
        return MissingServiceError(
            "The memory 'fulltext' requires SQLite's full-text search (FTS5), which the SQLite of this Python lacks; "
            "use the memory 'fifo' or 'facts', or another build of Python."
        )
    kinds: tuple[tuple[str, type[StorageError], str], ...] = (
        ("UNIQUE", StorageLockedError, "Another process writes to it; use a separate file for each agent."),
        ("locked", StorageLockedError, "Another process has locked it; use a separate file for each agent."),
        ("readonly", StorageReadOnlyError, "It is read-only."),
        ("unable to open", StorageReadOnlyError, "The file can't be opened or created."),
        ("not a database", NotADatabaseError, "The file is not a database; choose another one."),
        ("full", StorageFullError, "The disk is full."),
    )
    kind, advice = next(((k, a) for words_, k, a in kinds if words_ in said), (StorageError, "Is the file damaged?"))
    return kind(f"SQLite can't use {where}: {said}. {advice}")


def words_of(cell: Cell) -> list[str]:
    """Return the searchable words of a cell: those of its text and world."""
    return words(f"{cell.text} {cell.world}")


def _indexed(cell: Cell) -> str:
    return " ".join(words_of(cell))


def _cell(row: Sequence[JsonValue]) -> Cell:
    return Cell(row[1], row[2], row[3], row[4], row[5], run=row[6])
