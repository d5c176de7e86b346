"""Write `docs/reference/sandbox-templates.md` and its JSON Schema from `wsap_sandbox.templates.shape`.

    python tools/write_template_reference.py

A test compares both with what this writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wsap_sandbox.templates.loader import template_schema

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "sandbox-templates.md"
SCHEMA = ROOT / "docs" / "reference" / "sandbox-template.json"
HEAD = """# Templates of sandbox worlds

The keys of a template, a TOML file that describes a world of `wsap-sandbox`;
[write a sandbox world](../how-to/write-a-sandbox-world.md) shows how to write one. The same information is available
as a [JSON Schema](sandbox-template.json), for editors that complete and check TOML.
`python tools/write_template_reference.py` generates this page.

Ids of places, characters and objects must be unique and must not look alike (`barn` and `bam`, `l0ck` and
`lock`). `stay`, `here`, `none` and `happening` are reserved. Names that a reader can't distinguish are refused as well,
in any alphabet.
"""
TABLES = (
    ("`[world]`", "WorldShape"),
    ("`[world.topology]`", "TopologyShape"),
    ("`[[places]]`", "PlaceShape"),
    ("`[[characters]]`", "CharacterShape"),
    ("`[[characters.aims]]`", "Aim"),
    ("`[[objects]]`", "ObjectShape"),
    ("`[[stakes]]`", "StakeShape"),
)


def schema_text() -> str:
    """Return the text of the JSON Schema file."""
    return json.dumps(template_schema(), indent=2, ensure_ascii=False) + "\n"


def page() -> str:
    """Return the page."""
    kinds = template_schema()["$defs"]
    return HEAD + "".join(f"\n## {title}\n\n{table(kinds[name])}" for title, name in TABLES)


def table(kind: dict[str, Any]) -> str:
    """Return a kind's description and keys as Markdown."""
    needed = kind.get("required", [])
    rows = [f"| `{key}` | {value(one, key in needed)} | {told(one)} |" for key, one in kind["properties"].items()]
    return f"{kind['description']}\n\n| key | value | what it is |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def value(one: dict[str, Any], required: bool) -> str:
    """Return a key's type and default."""
    if "enum" in one:
        what = ", ".join(f"`{word}`" for word in one["enum"])
    elif one.get("type") == "array":
        what = "texts" if one["items"].get("type") == "string" else "tables"
    else:
        types = {"string": "text", "integer": "a whole number", "boolean": "`true` or `false`"}
        what = types.get(one.get("type", ""), "a table")
    default = one.get("default")
    return f"{what}, required" if required else f"{what}; `{default}`" if default not in ("", [], None, False) else what


def told(one: dict[str, Any]) -> str:
    """Return a key's description on one line."""
    return " ".join(one.get("description", "").split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    SCHEMA.write_text(schema_text(), "utf-8")
