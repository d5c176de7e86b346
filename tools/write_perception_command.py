"""Write the JSON Schemas of the Perception/Command protocol, and the tables between two marks of its page.

    python tools/write_perception_command.py

`docs/reference/perception-command.json` and `.md` are written from the models; a test compares them with what
this writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from wsap_tes3mp.protocol.bridge import AgentInfo, AgentList, BridgeStatus, ItemsReceipt, ItemsRequest, JoinRequest
from wsap_tes3mp.protocol.commands import PARAMS, CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.errors import ADDED_CODES, PROTOCOL_VERSION, SEED_CODES
from wsap_tes3mp.protocol.perception import PerceptionOutput

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "perception-command.md"
SCHEMA = PAGE.with_suffix(".json")
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
SEED_PAYLOADS: tuple[type[BaseModel], ...] = (PerceptionOutput, CommandInput, CommandAccepted, BridgeStatus)
ADDED_PAYLOADS: tuple[type[BaseModel], ...] = (Outcome, AgentInfo, AgentList, JoinRequest, ItemsRequest, ItemsReceipt)

# Any, in this module: a JSON Schema.


def schemas() -> dict[str, Any]:
    """Return the JSON Schemas (draft 2020-12) of all payloads and of the parameters of each command."""
    kinds = (*SEED_PAYLOADS, *ADDED_PAYLOADS, *PARAMS.values())
    _, found = models_json_schema([(kind, "validation") for kind in kinds], ref_template="#/$defs/{model}")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Perception/Command {PROTOCOL_VERSION}",
    }
    return {**head, **found}


def schemas_text() -> str:
    """Return the text of `perception-command.json`."""
    return json.dumps(schemas(), indent=2, sort_keys=True) + "\n"


def fields(kind: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, bool]]:
    """Yield path, type and whether it is required, for each field of a payload and of its objects."""
    for name, field in kind.model_fields.items():
        inner = next((each for each in _types(field.annotation) if _is_model(each)), None)
        listed = "tuple" in str(field.annotation) and inner is not None
        yield prefix + name, _word(field.annotation, inner, listed), name == "protocol_version" or field.is_required()
        if inner is not None:
            yield from fields(inner, f"{prefix}{name}{'[]' if listed else ''}.")


def tables() -> str:
    """Return the tables as Markdown."""
    parts: list[str] = []
    for kind in (*SEED_PAYLOADS, *ADDED_PAYLOADS):
        parts.append(f"### {kind.__name__}\n\n{' '.join((kind.__doc__ or '').split())}\n")
        rows = [f"| `{path}` | {word} | {_yes(needed)} |" for path, word, needed in fields(kind)]
        parts.append("\n".join(["| Field | Type | Required |", "| --- | --- | --- |", *rows]) + "\n")
    parts.append(
        "### Commands\n\n| Command | Meaning | Parameters |\n| --- | --- | --- |\n" + "\n".join(_commands()) + "\n"
    )
    parts.append("### Errors\n\n| Code | Status | Retry? | Since | Meaning |\n| --- | --- | --- | --- | --- |")
    for since, kinds in (("1.0.0", SEED_CODES), ("1.1.0", ADDED_CODES)):
        for error in kinds:
            meaning = " ".join((error.__doc__ or "").split()).removeprefix("1.1.0: ")
            meaning = meaning[:1].upper() + meaning[1:]
            parts.append(f"| `{error.code}` | {error.http_status} | {_yes(error.retryable)} | {since} | {meaning} |")
    return "\n".join(parts)


def with_tables(page: str) -> str:
    """Return a page with the tables between its marks."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def _commands() -> Iterator[str]:
    for name, kind in PARAMS.items():
        params = ", ".join(f"`{path}`{'' if needed else '?'}" for path, _, needed in fields(kind))
        yield f"| `{name}` | {' '.join((kind.__doc__ or '').split())} | {params or '–'} |"


def _types(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in get_args(annotation):
        yield from _types(each)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _word(annotation: Any, inner: type[BaseModel] | None, listed: bool) -> str:
    if inner is not None:
        return "array of objects" if listed else "object"
    text = str(annotation)
    known = (
        ("tuple", "array of strings"), ("Mapping", "object"), ("Datetime", "ISO 8601 datetime"), ("bool", "bool"),
        ("float", "float"), ("int", "int"), ("Literal", "string"),
    )  # fmt: skip
    return next((word for sign, word in known if sign in text), "string")


def _yes(it_is: bool) -> str:
    return "yes" if it_is else "no"


if __name__ == "__main__":
    SCHEMA.write_text(schemas_text(), encoding="utf-8")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
