"""Reads names, weights, cells and quests from the owner's data files (TES3 ESM and ESP).

Format: https://en.uesp.net/wiki/Morrowind_Mod:Mod_File_Format. Records have a header of 16 bytes (type, size, two
numbers) and contain subrecords with a header of 8 (type, size); little-endian, text in a Windows code page. Only the
beginning of a record is read, and sizes are checked before use.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from wsap_core.errors import ConfigError

CELL_SIZE = 8192
"""Side of an exterior cell, in the game's units."""
GRID = re.compile(r"(-?\d{1,6}), (-?\d{1,6})")
"""The server's name of an exterior cell."""
Encoding = Literal["cp1252", "cp1251", "cp1250"]
_HEADER = struct.Struct("<4sI8x")
_PART = struct.Struct("<4sI")
_CELL = struct.Struct("<iii")
_MOST = 64 * 1024
"""Maximum bytes read of a record: everything needed is at its beginning."""
_LONGEST_NAME = 200
_MOST_FILES = 255
_JOURNAL = 4
_CARRIED = 0x2
"""Flag of a portable light."""

_KINDS = {b"NPC_": "npc", b"CREA": "creature", b"DOOR": "door", b"CONT": "container"}
_WEIGHTS = {
    b"MISC": (b"MCDT", 0), b"WEAP": (b"WPDT", 0), b"ARMO": (b"AODT", 4), b"CLOT": (b"CTDT", 4), b"BOOK": (b"BKDT", 0),
    b"ALCH": (b"ALDT", 0), b"INGR": (b"IRDT", 0), b"LOCK": (b"LKDT", 0), b"PROB": (b"PBDT", 0), b"REPA": (b"RIDT", 0),
    b"APPA": (b"AADT", 8), b"LIGH": (b"LHDT", 0),
}  # fmt: skip
"""Type of an item's record -> the subrecord with its weight, and the offset."""
_WANTED = frozenset({*_KINDS, *_WEIGHTS, b"CELL", b"DIAL", b"INFO"})
_THING = b"FRMR"
"""The first subrecord of each thing in a cell."""
Parts = dict[bytes, bytes]


@dataclass(frozen=True)
class GameObject:
    """A kind of person or thing; None is unknown."""

    name: str | None = None
    kind: str | None = None
    """npc, creature, item, door or container."""
    weight: float | None = None


UNKNOWN = GameObject()


@dataclass
class Quest:
    """A quest in the journal."""

    name: str | None = None
    finished: set[int] = field(default_factory=set)
    """The journal indices that end it."""


@dataclass
class GameData:
    """The contents of data files; keys are in lower case, as the game compares them."""

    objects: dict[str, GameObject] = field(default_factory=dict)
    interiors: dict[str, str] = field(default_factory=dict)
    exteriors: dict[tuple[int, int], str] = field(default_factory=dict)
    """Grid -> name; most exterior cells have none."""
    quests: dict[str, Quest] = field(default_factory=dict)

    def find(self, ref_id: str) -> GameObject:
        """Return the object with an id, or `UNKNOWN`."""
        return self.objects.get(ref_id.lower(), UNKNOWN)

    def cell(self, description: str) -> str | None:
        """Return the name of a cell, given the server's name for it."""
        grid = GRID.fullmatch(description)
        return self.exteriors.get((int(grid[1]), int(grid[2]))) if grid else self.interiors.get(description.lower())

    def description(self, cell: str, x: float | None = None, y: float | None = None) -> str | None:
        """Return the server's name for a cell named by an agent; None if there is no such cell.

        A town has several exterior cells with one name: coordinates select one, by default the first.
        """
        if GRID.fullmatch(cell):
            return cell
        if (interior := self.interiors.get(cell.lower())) is not None:
            return interior
        grids = sorted(grid for grid, name in self.exteriors.items() if name.lower() == cell.lower())
        if not grids:
            return None
        east, north = grids[0] if x is None or y is None else (int(x // CELL_SIZE), int(y // CELL_SIZE))
        return f"{east}, {north}"


def read_data(paths: Sequence[Path], *, encoding: Encoding = "cp1252") -> GameData:
    """Return the contents of data files, or of those in a folder, in the game's order: masters first, then by age.

    Raises:
        ConfigError: a file is missing, damaged, or not a data file.
    """
    data = GameData()
    for path in paths:
        files = [path]
        if path.is_dir():
            files = [file for file in path.iterdir() if file.suffix.lower() in (".esm", ".esp") and file.is_file()]
            files.sort(key=lambda file: (file.suffix.lower() == ".esp", file.stat().st_mtime, file.name.lower()))
        if not files:
            raise ConfigError(f"The folder {path} has no .esm or .esp file; name the game's folder Data Files.")
        for file in files[:_MOST_FILES]:
            try:
                with file.open("rb") as stream:
                    _Reader(data, encoding).read(stream, str(file))
            except OSError as error:
                raise ConfigError(f"The data file {file} can't be read: {error.strerror or error}.") from error
    return data


def _parts(record: bytes) -> Parts:
    """Return the first subrecord of each type, up to the things in a cell or a truncated one."""
    found: Parts = {}
    at = 0
    while at + _PART.size <= len(record):
        kind, size = _PART.unpack_from(record, at)
        at += _PART.size
        if kind == _THING or size > len(record) - at:
            break
        found.setdefault(kind, record[at : at + size])
        at += size
    return found


class _Reader:
    """Reads one file after another into the same data."""

    def __init__(self, data: GameData, encoding: str) -> None:
        self._data, self._encoding = data, encoding
        self._journal: Quest | None = None
        """The quest of the current INFO records."""

    def read(self, stream: BinaryIO, name: str) -> None:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        at = 0
        while at < end:
            header = stream.read(_HEADER.size)
            kind, size = _HEADER.unpack(header) if len(header) == _HEADER.size else (b"", 0)
            if at == 0 and kind != b"TES3":
                raise ConfigError(f"The file {name} is not a data file of the game: it does not start with TES3.")
            at += _HEADER.size
            if size > end - at or len(header) < _HEADER.size:
                start = at - _HEADER.size
                raise ConfigError(f"The data file {name} is damaged: the record at byte {start} is truncated.")
            if kind in _WANTED and (kind != b"INFO" or self._journal is not None):
                self._take(kind, _parts(stream.read(min(size, _MOST))))
            at += size
            stream.seek(at)

    def _text(self, raw: bytes) -> str:
        text = raw.split(b"\0", 1)[0][:_LONGEST_NAME].decode(self._encoding, "replace")
        return "".join(c if c.isprintable() else " " for c in text).strip()

    def _take(self, kind: bytes, parts: Parts) -> None:
        name = self._text(parts.get(b"NAME", b""))
        if kind == b"CELL":
            self._cell(name, parts)
        elif kind == b"DIAL":
            journal = name and parts.get(b"DATA", b"")[:1] == bytes([_JOURNAL])
            self._journal = self._data.quests.setdefault(name.lower(), Quest()) if journal else None
        elif kind != b"INFO":
            self._object(kind, name.lower(), parts)
        elif self._journal is not None:
            if b"QSTN" in parts:
                self._journal.name = name or None
            index = _number(parts.get(b"DATA", b""), 4, "<i")
            if b"QSTF" in parts and index is not None:
                self._journal.finished.add(int(index))

    def _object(self, kind: bytes, ref_id: str, parts: Parts) -> None:
        if not ref_id:
            return
        if b"DELE" in parts:
            self._data.objects.pop(ref_id, None)
            return
        name = self._text(parts.get(b"FNAM", b"")) or None
        if kind in _KINDS:
            self._data.objects[ref_id] = GameObject(name, _KINDS[kind])
            return
        part, offset = _WEIGHTS[kind]
        values = parts.get(part, b"")
        if kind == b"LIGH" and not int(_number(values, 20, "<I") or 0) & _CARRIED:
            return
        weight = _number(values, offset, "<f")
        if weight is not None:  # a comparison with NaN is false
            weight = float(f"{weight:.4g}") if 0 <= weight < 1e6 else None
        self._data.objects[ref_id] = GameObject(name, "item", weight)

    def _cell(self, name: str, parts: Parts) -> None:
        data = parts.get(b"DATA", b"")
        if not name or len(data) < _CELL.size:
            return
        flags, east, north = _CELL.unpack_from(data)
        if flags & 1:
            self._data.interiors[name.lower()] = name
        else:
            self._data.exteriors[east, north] = name


def _number(raw: bytes, at: int, form: str) -> float | None:
    return struct.unpack_from(form, raw, at)[0] if len(raw) >= at + 4 else None
