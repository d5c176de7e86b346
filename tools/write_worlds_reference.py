"""Write `docs/reference/worlds.md` from the docstrings of `wsap_core.worlds` and `wsap_core.authoring`.

    python tools/write_worlds_reference.py

A test compares the page with what this writes.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "worlds.md"
HEAD = """# Worlds, seats and the authoring kit

Base classes of games, and the classes that turn a game into a world with seats.
[Write a game for several seats](../how-to/write-a-game-for-several-seats.md) and
[adapt a Gymnasium environment](../how-to/adapt-a-gymnasium-environment.md) show the base classes in use;
[time and seats](../explanation/time-and-seats.md) explains the design. `python tools/write_worlds_reference.py`
generates this page from the docstrings.
"""
GROUPS = {
    "Games of several seats": ("authoring.rules", "authoring.rounds"),
    "Worlds and seats": ("worlds.world", "worlds.seat", "worlds.barrier", "worlds.mailbox", "worlds.legality"),
    "Games of one body": ("authoring.authored", "authoring.bodies", "authoring.one_body"),
    "Parts of such games": tuple(f"authoring.{name}" for name in ("body", "item_ledger", "packing", "grid")),
}
SECTION = re.compile(r"^(Args|Raises):\n((?:    .*\n?|\n(?=    ))+)", re.MULTILINE)
ENTRY = re.compile(r"^    (?=\S)", re.MULTILINE)


def text_of(docstring: str | None, indent: str = "") -> str:
    """Return a docstring as Markdown, with lists of arguments and errors."""

    def listed(match: re.Match[str]) -> str:
        entries = (" ".join(entry.split()) for entry in ENTRY.split(match[2]) if entry.strip())
        lines = (
            re.sub(r"^([\w, ]+):", lambda m: "- " + ", ".join(f"`{n}`" for n in m[1].split(", ")) + ":", e)
            for e in entries
        )
        return {"Args": "Arguments", "Raises": "Raises"}[match[1]] + ":\n\n" + "\n".join(lines) + "\n"

    text = SECTION.sub(listed, inspect.cleandoc(docstring or "") + "\n").rstrip()
    return text.replace("\n", "\n" + indent).replace(f"\n{indent}\n", "\n\n")


def members(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the public attributes and methods of a class or module as list items."""
    for line, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(line, ast.FunctionDef) and line.name == "__init__":
            yield from members(line.body)
        elif isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef) and not line.name.startswith("_"):
            if documented := text_of(ast.get_docstring(line), "  "):
                yield f"- `{signature(line)}`: {documented}"
        elif isinstance(line, ast.AnnAssign | ast.Assign):
            target = line.target if isinstance(line, ast.AnnAssign) else line.targets[0]
            named = ast.unparse(target).removeprefix("self.")
            described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if described and not named.startswith("_"):
                yield f"- `{named}`: {text_of(str(after.value.value), '  ')}"  # type: ignore[union-attr]  # as described


def signature(line: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return a function's signature; a property's name."""
    if any(ast.unparse(mark) in ("property", "cached_property") for mark in line.decorator_list):
        return line.name
    arguments = ast.unparse(line.args).removeprefix("self, ").removeprefix("cls, ").removeprefix("self")
    returned = "" if line.returns is None or ast.unparse(line.returns) == "None" else f" -> {ast.unparse(line.returns)}"
    return f"{'async ' * isinstance(line, ast.AsyncFunctionDef)}{line.name}({arguments}){returned}"


def module(name: str) -> str:
    """Return the section of a module."""
    tree = ast.parse((ROOT / "wsap_core" / f"{name.replace('.', '/')}.py").read_text("utf-8"))
    parts = [f"### `wsap_core.{name}`", text_of(ast.get_docstring(tree))]
    parts += ["\n".join(own)] if (own := list(members(tree.body))) else []
    for line in tree.body:
        if isinstance(line, ast.ClassDef) and not line.name.startswith("_"):
            bases = ", ".join(map(ast.unparse, line.bases))
            parts.append(f"#### `{line.name}{f'({bases})' * bool(bases)}`")
            parts.append(text_of(ast.get_docstring(line)))
            parts += ["\n".join(own)] if (own := list(members(line.body))) else []
    return "\n\n".join(parts)


def page() -> str:
    """Return the page."""
    sections = [f"## {title}\n\n" + "\n\n".join(map(module, names)) for title, names in GROUPS.items()]
    return "\n".join([HEAD, "\n\n".join(sections)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
