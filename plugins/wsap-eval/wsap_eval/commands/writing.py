"""Writes the results of a folder in another format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from wsap_core.errors import UsageError
from wsap_core.seams.services import RunReader, runtime_services
from wsap_core.textfile import written_to
from wsap_eval.reading import played_of
from wsap_eval.results import PLAN
from wsap_eval.run import Played


def write(folder: Path, form: str, *, out: Path | None, database: str | None, dashboard: str = "") -> list[Path]:
    """Write the results of a folder as csv, jsonl, html, inspect or every-eval-ever, and return the files.

    `out` is a folder or the file of a report, by default in `folder`; `database` has the runs, by default the file in
    the folder. Raises UsageError if there are no results or the output can't be written; MissingServiceError if a
    package is not installed.
    """
    try:
        return _write(folder, form, out, database, dashboard)
    except OSError as error:
        where = error.filename or out or folder
        raise UsageError(f"{str(where)!r} can't be written: {error.strerror or error}.") from error


def _write(folder: Path, form: str, out: Path | None, database: str | None, dashboard: str) -> list[Path]:
    if (folder / PLAN).exists():
        return [_write_transfer(folder, form, out)]
    played = played_of(folder)
    if not played.records:
        raise UsageError(f"{str(folder)!r} has no episodes yet, so there is nothing to export.")
    if form == "html":
        path = out or folder
        if path.suffix != ".html":
            path = _made(path) / "report.html"
        return [write_report(played, path, database=database or str(folder / "runs.db"), dashboard=dashboard)]
    if form in ("csv", "jsonl"):
        from wsap_eval.export.flat import write_flat

        kind: Literal["csv", "jsonl"] = "csv" if form == "csv" else "jsonl"
        return write_flat(played.rows(), played.records, played.standings(), _made(out or folder), kind)
    if form == "every-eval-ever":
        from wsap_eval.export.every import write_every

        return write_every(played, _made(out or folder / form))
    from wsap_eval.export.inspect import write_inspect

    with _runs(folder, database) as runs:
        return write_inspect(played, runs, _made(out or folder / form))


def _write_transfer(folder: Path, form: str, out: Path | None) -> Path:
    from wsap_eval.export.transfer import write_verdicts
    from wsap_eval.report.transfer_page import transfer_html
    from wsap_eval.transfer.run import read_measured

    if form not in ("csv", "jsonl", "html"):
        raise UsageError(f"A transfer measurement can't be written as {form}; there are: csv, jsonl, html.")
    measured = read_measured(folder)
    if form != "html":
        return write_verdicts(measured, _made(out or folder), "csv" if form == "csv" else "jsonl")
    path = out or folder
    if path.suffix != ".html":
        path = _made(path) / "report.html"
    with written_to(path) as file:
        file.write(transfer_html(measured))
    return path


def write_report(played: Played, path: Path, *, database: str, dashboard: str = "") -> Path:
    """Write the HTML report and return its path. Raises UsageError if it can't be written."""
    from wsap_eval.report.page import report_html

    page = report_html(played, database=database, dashboard=dashboard)
    with written_to(path) as file:
        file.write(page)
    return path


@contextmanager
def _runs(folder: Path, database: str | None) -> Iterator[RunReader | None]:
    """Yield the recorded runs; None if there is no database."""
    if database is None and not (folder / "runs.db").exists():
        yield None
        return
    with runtime_services(database or str(folder / "runs.db")) as services:
        yield services.require("runs")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
