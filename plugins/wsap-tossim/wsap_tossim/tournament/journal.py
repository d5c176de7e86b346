"""An append-only file with one JSON object per line, for work that must not be repeated."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsap_core.errors import UsageError, WireError
from wsap_core.textfile import refuse_pipe

__all__ = ["Journal"]

Row = Mapping[str, Any]
"""Any: JSON data."""


class Journal:
    """An open file of rows, created if it is missing; an incomplete last line is removed.

    Raises:
        WireError: a line is damaged.
        UsageError: the file can't be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[Row] = []
        """Its rows, oldest first."""
        self.cut = 0
        """Bytes of an incomplete line that were removed."""
        try:
            if path.exists():
                refuse_pipe(path)
            data = path.read_bytes() if path.exists() else b""
            whole = data[: data.rfind(b"\n") + 1]
            for number, line in enumerate(whole.splitlines(), start=1):
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise WireError(f"Line {number} of {str(path)!r} is damaged: it is not a JSON object.")
                self.rows.append(row)
            self.cut = len(data) - len(whole)
            if self.cut:
                with path.open("r+b") as file:
                    file.truncate(len(whole))
            self._file = path.open("ab")
        except (ValueError, RecursionError) as error:
            raise WireError(f"{str(path)!r} is damaged: {error}.") from error
        except OSError as error:
            raise UsageError(f"{str(path)!r} can't be used: {error.strerror or error}.") from error

    def add(self, row: Row) -> None:
        """Add a row; it is on disk when this returns.

        Raises:
            UsageError: it can't be written.
        """
        try:
            self._file.write(json.dumps(row, separators=(",", ":"), allow_nan=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise UsageError(f"{str(self._path)!r} can't be written: {error.strerror or error}.") from error
        self.rows.append(row)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
