"""A replay as one HTML file, which makes no requests: the page's own player, and what it would ask for."""

from __future__ import annotations

import asyncio
import base64
import gzip
import html
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol.lines import plural
from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import single_line
from wsap_nexus.dashboard.app import FOLDER
from wsap_nexus.http.access.callers import admin
from wsap_nexus.http.replies import BROWSER_HEADERS
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.deps import RunId
from wsap_nexus.server.routes.recorded.curves import Curves
from wsap_nexus.server.routes.recorded.decisions import conversation, step_in_full
from wsap_nexus.server.routes.recorded.runs import MOMENTS_READ, moment_json, reading_of, seats_of, weightiest
from wsap_nexus.server.watched.stage import Language
from wsap_nexus.store.records import EventRecord, RunRecord
from wsap_nexus.store.repository import Repository

# Any, in this module: JSON.

_HTML: dict[str, Any] = {
    "description": "One HTML file, which makes no requests.",
    "content": {"text/html": {"schema": {"type": "string"}}},
}

router = APIRouter(prefix="/runs/{run_id}", tags=["runs"], dependencies=[Depends(admin)])

MOST_STEPS = 5000
"""Steps in one file, at most."""

_TOLD_OF_CALLS = ("seq", "kind", "time", "purpose", "finish", "usage", "constraint", "shared")
"""What a file without prompts has of a model call."""
_PROMPT_KINDS = ("tool", "tools", "lessons", "picture")
"""Kinds of events behind a decision that can hold what only its agent knows."""


@router.get("/page", response_class=Response, responses={200: _HTML})
async def page(
    nexus: Hub,
    run_id: RunId,
    position: Annotated[int, Query(ge=0, le=2**53, description="The first step, from 0.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_STEPS)] = MOST_STEPS,
    prompts: Annotated[bool, Query(description="With prompts, replies, tools and lessons of models.")] = False,
    language: Language = "en",
) -> Response:
    """A replay as one HTML file, to keep or to send to somebody; it holds what its agents saw and why they acted."""
    with nexus.nexus_store.look() as tx:
        names = {agent: name for agent, name, _ in tx.players([run_id]).get(run_id, ())}
    repository = nexus.store.repository
    part = Part(position, limit, prompts)
    made = await asyncio.to_thread(saved_page, repository, nexus.host, run_id, names, part, language)
    name = re.sub(r"[^a-z0-9._-]", "-", run_id)
    headers = {**BROWSER_HEADERS, "Content-Disposition": f'attachment; filename="{name}.html"'}
    return Response(made, media_type="text/html", headers=headers)


@dataclass(frozen=True)
class Part:
    """The part of a run that a file holds."""

    first: int = 0
    """The position of its first step, from 0."""
    steps: int = MOST_STEPS
    """The number of steps, at most."""
    prompts: bool = False
    """Whether it holds prompts, replies, tools and lessons of models, too: they can quote persona and memories."""


def saved_page(
    repository: Repository,
    host: PluginHost,
    run_id: str,
    names: Mapping[str, str],
    part: Part,
    language: Language = "en",
) -> str:
    """Return the HTML of a replay.

    Args:
        names: agent of the nexus -> its name.
        part: which steps, and whether with prompts.

    Raises:
        UnknownNameError: there is no such run.
        UsageError: the part has no step.
    """
    record = repository.get_run(run_id)
    found = _data(repository, host, record, names, part, language)
    packed = base64.b64encode(gzip.compress(dumps(found).encode(), 9, mtime=0)).decode("ascii")
    script, style = bundled("saved.js", {"api.js": "saved_api.js"}), _asset("style.css")
    policy = (
        f"default-src 'none'; img-src data:; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'"
    )
    title = html.escape(single_line(f"{found['run']['title']}: {record.id}"))
    return f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="main" tabindex="-1"></main>
<noscript><p class="noscript">This replay needs JavaScript; it loads nothing from elsewhere.</p></noscript>
<script type="text/plain" id="data">{packed}</script>
<script>{script}</script>
</body>
</html>
"""


def _data(
    repository: Repository,
    host: PluginHost,
    record: RunRecord,
    names: Mapping[str, str],
    part: Part,
    language: Language,
) -> dict[str, Any]:
    reading = reading_of(host, record)
    seqs = [seq for seq, _ in repository.find_events(record.id, "step")]
    chosen = seqs[part.first : part.first + part.steps]
    if not chosen:
        held = f"has {plural(len(seqs), 'step')}" if seqs else "has no steps"
        raise UsageError(f"Run {record.id!r} {held}, so there is nothing to save from step {part.first + 1} on.")
    steps: list[dict[str, Any]] = []
    curves = Curves(len(chosen), reading.meters)
    calls: dict[str, Any] = {}
    events = repository.read_events(record.id, from_seq=chosen[0], to_seq=chosen[-1] + 1, kinds=("step",))
    for position, event in enumerate(events):
        step = step_in_full(repository, record, event, position, reading)
        if part.prompts:
            shared = [one["seq"] for one in step["behind"] if one.get("shared")]
            calls |= {str(seq): _whole(repository, record, seq) for seq in shared}
        else:
            step["behind"] = [_without_prompt(one) for one in step["behind"] if one["kind"] not in _PROMPT_KINDS]
        steps.append(step)
        curves.add(position, event)
    read = repository.moments_of(record.id, limit=MOMENTS_READ)
    told = [one for one in read if chosen[0] <= one.seq <= chosen[-1]]
    return {
        "run": {
            "id": record.id,
            "game": record.game,
            "title": reading.title,
            "seed": record.seed,
            "status": record.status.value,
            "created": record.created,
            "seats": seats_of(record),
            "summary": record.summary,
            "look_back": "",
        },
        "first": part.first,
        "of": len(seqs),
        "steps": steps,
        "moments": [moment_json(one, names, language, bisect_right(chosen, one.seq)) for one in weightiest(told)],
        "curves": curves.drawn(),
        "calls": calls,
    }


def _whole(repository: Repository, record: RunRecord, seq: int) -> dict[str, Any]:
    event: EventRecord = next(iter(repository.read_events(record.id, from_seq=seq, to_seq=seq + 1)))
    messages, whole = conversation(repository, record, event)
    return {"messages": messages, "whole": whole}


def _without_prompt(behind: dict[str, Any]) -> dict[str, Any]:
    if behind["kind"] != "call" or behind.get("damaged"):
        return behind
    return {key: behind[key] for key in _TOLD_OF_CALLS} | {"withheld": True}


# --- the player ---------------------------------------------------------------------------------------

_IMPORT = re.compile(r"^import \{ ([^}]+) \} from '\./([\w-]+\.js)';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|let|class) (\w+)", re.MULTILINE)


def bundled(entry: str, instead: Mapping[str, str]) -> str:
    """Return the modules of the page that one of them needs as one script.

    Args:
        entry: the module that begins.
        instead: module -> the one that takes its place.
    """
    written: dict[str, str] = {}

    def add(name: str) -> None:
        if name in written:
            return
        text = _asset(instead.get(name, name))
        for _, needed in _IMPORT.findall(text):
            add(needed)
        body = _IMPORT.sub(r"const { \1 } = modules['\2'];\n", text)
        exported = ", ".join(name for _, name in _EXPORT.findall(body))
        body = _EXPORT.sub(r"\1 \2", body)
        written[name] = f"modules['{name}'] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"

    add(entry)
    return f"'use strict';\nconst modules = {{}};\n{''.join(written.values())}"


def _asset(name: str) -> str:
    return (Path(FOLDER) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode("ascii")
