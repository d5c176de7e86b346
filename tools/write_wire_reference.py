"""Write `docs/reference/openapi.json`, and the table of error codes between two marks of `wire-api.md`.

    python tools/write_wire_reference.py

A test compares both with what this writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fastapi import FastAPI

from wsap_core.errors import WsapError
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.http import errors
from wsap_nexus.schemas import to_json
from wsap_nexus.server import serve
from wsap_nexus.server.app import include_routes
from wsap_nexus.worlds.remote import serve_world as world

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
BEGIN, END = "<!-- codes: begin -->", "<!-- codes: end -->"
_OWN = tuple(
    ["wsap_core.errors", "wsap_nexus.errors", "wsap_nexus.store.errors"]
    + [f"wsap_nexus.{room}." for room in ("agents", "http", "hub", "server", "worlds")]
)
_LOADED = (serve, world)
"""Together they import every module that defines errors."""


def document() -> str:
    """Return the text of `openapi.json`."""
    app = FastAPI(title="WSAP nexus", version=PROTOCOL_VERSION)
    include_routes(app)
    return to_json(app.openapi())


def codes() -> dict[str, tuple[int, bool, str]]:
    """Return code -> HTTP status, whether a retry can help, and meaning."""
    found: dict[str, tuple[int, bool, str]] = {}
    for kind in _tree(WsapError):
        if kind.__module__.startswith(_OWN) and "code" in vars(kind):
            meaning = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
            found[kind.code] = (kind.http_status, kind.retryable, meaning)
    found |= {code: (status, status >= 500, meaning) for status, (code, meaning) in errors.CODES.items()}
    return dict(sorted(found.items()))


def codes_table() -> str:
    """Return the codes as a Markdown table."""
    lines = ["| Code | Status | Retry? | Meaning |", "| --- | --- | --- | --- |"]
    for code, (status, retry, meaning) in codes().items():
        lines.append(f"| `{code}` | {status} | {'yes' if retry else 'no'} | {meaning} |")
    return "\n".join(lines)


def with_codes(page: str) -> str:
    """Return the page with the current table of codes."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{codes_table()}\n{END}{tail}"


def _tree(kind: type[WsapError]) -> Iterator[type[WsapError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)


if __name__ == "__main__":
    (FOLDER / "openapi.json").write_text(document(), encoding="utf-8")
    page = FOLDER / "wire-api.md"
    page.write_text(with_codes(page.read_text(encoding="utf-8")), encoding="utf-8")
