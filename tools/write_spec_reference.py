"""Write `docs/reference/specs.md` from the classes that authors of plugins fill in.

    python tools/write_spec_reference.py

A test compares the page with what this writes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from wsap_core.protocol import ParamDef
from wsap_core.specs import AdapterSpec, OptionDef, ScoreMetric, problems_of
from wsap_core.worlds.legality import wrong_parameter

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "specs.md"
HEAD = """# The fields of specs

What authors of games, agents, backends, memories and tools fill in: each class with its fields, their types and
defaults. A field without a default is required. [The hooks](hooks.md) say which plugin returns what.
`python tools/write_spec_reference.py` generates this page from the classes.

A factory is a callable, or a `"module:attribute"` text that is imported at first use; it takes a `Context` or nothing.
A class in a file that no plugin registers sets the fields of its spec in `wsap_spec`, a mapping. A spec with a value of
another type than its field declares is not registered, and `wsap plugins` says why.
"""
GROUPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "What plugins register": {
        "wsap_core.specs": ("AdapterSpec", "AgentSpec", "BackendSpec", "MemorySpec", "ToolSpec", "CommandSpec"),
        "wsap_nexus.hookspecs": ("ListenerSpec",),
    },
    "What specs are made of": {
        "wsap_core.specs": ("OptionDef", "ScoreMetric", "EpisodeSummary"),
        "wsap_core.protocol": ("Achievement", "TransferRule", "Bonus"),
    },
    "Actions and tools": {"wsap_core.protocol": ("ActionSpace", "ActionDef", "ParamDef", "Tool")},
    "What games answer": {
        "wsap_core.protocol": (
            *("Observation", "ActionAvailability", "Location", "Entity", "Terrain", "Effect", "Goal", "Event"),
            *("ActionResult", "Tick", "EmbodiedObservation", "Avatar", "RespawnOption", "PortableItem"),
        )
    },
    "What agents answer": {"wsap_core.protocol": ("Action",), "wsap_core.seams.agent": ("Usage",)},
    "Model backends": {
        "wsap_core.seams.model": ("Abilities", "Reply", "FunctionCall", "Draft", "Finish", "Price"),
        "wsap_core.seams.listing": ("Listing", "ModelInfo"),
    },
    "Memories": {"wsap_core.seams.memory": ("Recollection",)},
    "Views": {
        "wsap_core.protocol": (
            *("View", "GridMapBlock", "PlaceGraphBlock", "ImageBlock", "TableBlock", "TextBlock", "ChatBlock"),
            *("ChatLine", "TimelineBlock", "TimelineEntry", "Selection"),
        )
    },
}
PART_OPTIONS = "tuple[OptionDef, ...] | str"
GAME = AdapterSpec("mine", "My game.", "mine:Game")
WRONG: Mapping[str, Mapping[str, object]] = {
    "AdapterSpec": {
        "abilities": ("seed", 1),
        "seats": (5, 2),
        "seat_names": ("",),
        "timing": "turns",
        "deadline": -3.0,
        "score_metrics": (ScoreMetric("mean", "", "mine:mean", low="0"),),  # type: ignore[arg-type]  # wrong
        "options": ("rounds",),
        "max_worlds": 0,
        "protocol_version": "9.0",
    },
    "ParamDef": {"spec": ("1..5", "1-", "integer"), "schema": ({"type": "intger"},)},
}
"""Class -> field -> an example of a value that is refused, of which the page shows the message."""
REFUSED = {
    "AdapterSpec": "Values of another type, and values that make no sense, are refused",
    "ParamDef": "`wsap check` refuses a declaration that would mean something else than it says",
}


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for title, modules in GROUPS.items():
        parts.append(f"## {title}\n")
        for module, names in modules.items():
            found = importlib.import_module(module)
            parts += [line for name in names for line in section(getattr(found, name))]
    return "\n".join(parts)


def section(cls: type) -> Iterator[str]:
    """Yield the lines about a class."""
    yield f"### {cls.__name__}\n"
    yield f"`{cls.__module__}.{cls.__name__}`. {one_line(inspect.getdoc(cls))}\n"
    yield "| field | type | default | meaning |"
    yield "|---|---|---|---|"
    for field in fields(cls):
        kind, meaning = told(cls, field.name)
        yield f"| `{field.name}` | {kind} | {default_of(field)} | {meaning} |"
    yield ""
    if refused := list(refusals(cls.__name__)):
        yield from (f"{REFUSED[cls.__name__]}, for example:\n", *refused, "")


def refusals(name: str) -> Iterator[str]:
    """Yield the list of values that a class refuses, each with the message."""
    for field, value in WRONG.get(name, {}).items():
        if name == "AdapterSpec":
            messages = problems_of(replace(GAME, **{field: value}))
            yield f"- `{field}={shown(value)}`: {' '.join(messages)}"
        for wrong in value if name == "ParamDef" else ():  # type: ignore[attr-defined]  # a tuple, as above
            yield f"- `{field}={wrong!r}`: {wrong_parameter(ParamDef('count', **{field: wrong}))}"


def shown(value: object) -> str:
    """Return a value as it is written in Python, without the fields that have their defaults."""
    if isinstance(value, tuple) and any(isinstance(each, ScoreMetric | OptionDef) for each in value):
        return "(ScoreMetric(..., low='0'),)"
    return repr(value)


def told(cls: type, name: str) -> tuple[str, str]:
    """Return the type of a field as it is declared, and its docstring with that of the type's name."""
    for base in cls.__mro__:
        if (found := declared(base).get(name)) is None:
            continue
        kind, text = found
        aliases = aliases_of(sys.modules[base.__module__])
        for alias in re.findall(r"\w+", kind):
            if alias in aliases:
                words, meaning = aliases[alias]
                text = " ".join(filter(None, (text, meaning)))
                kind = re.sub(rf"\b{alias}\b", lambda _, words=words: words, kind)  # type: ignore[misc]
        return "`" + kind.replace("|", "\\|") + "`", text.replace("|", "\\|")
    raise LookupError(f"{cls.__name__}.{name} is not declared in a class")


@cache
def declared(cls: type) -> dict[str, tuple[str, str]]:
    """Return the fields that a class declares itself: name -> type, docstring."""
    if cls.__module__ == "builtins" or cls.__module__ == "typing":
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[cls.__module__]))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls.__name__).body
    return {
        ast.unparse(line.target): (ast.unparse(line.annotation), docstring(after))
        for line, after in zip(body, [*body[1:], None], strict=True)
        if isinstance(line, ast.AnnAssign)
    }


@cache
def aliases_of(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Return the names of literals that a module sees: name -> the literal, docstring."""
    found = {}
    tree = ast.parse(inspect.getsource(module))
    for line, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        words = ast.unparse(line.value) if isinstance(line, ast.Assign) else ""
        if isinstance(line, ast.Assign) and (words.startswith("Literal[") or words == PART_OPTIONS):
            found[ast.unparse(line.targets[0])] = words, docstring(after)
        if isinstance(line, ast.ImportFrom) and line.module and line.module.startswith("wsap_core.seams"):
            other = aliases_of(importlib.import_module(line.module))
            found |= {name.name: other[name.name] for name in line.names if name.name in other}
    return found


def docstring(line: ast.stmt | None) -> str:
    """Return the text of a statement that is only a text, on one line."""
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str):
        return one_line(line.value.value)
    return ""


def one_line(text: str | None) -> str:
    """Return text on one line."""
    return " ".join((text or "").split())


def default_of(field: Field[Any]) -> str:
    """Return the default as it is written in Python; empty if the field is required."""
    if isinstance(field.default_factory, Callable):  # type: ignore[arg-type]  # MISSING is not callable
        made = field.default_factory()  # type: ignore[misc]
        return f"`{made!r}`" if isinstance(made, dict | list | tuple) else f"`{type(made).__name__}()`"
    if field.default is MISSING:
        return ""
    plain = isinstance(field.default, str | int | float | tuple | None)
    return f"`{field.default!r}`" if plain else f"`{type(field.default).__name__}(...)`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
