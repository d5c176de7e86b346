"""What tires in a house: folders with too many modules side by side, and constructors with too many parameters."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = sorted(
    path.parent
    for pattern in ("*", "nexus/*", "plugins/*/*")
    for path in ROOT.glob(f"{pattern}/__init__.py")
    if path.parent.name.startswith("wsap_")
)

MOST_MODULES = 12
"""Modules in a folder, beside its sub-folders."""

MORE_MODULES = {
    "wsap_core": 17,
    "wsap_core/protocol": 16,
}
"""Folders with more: the kernel's modules are public names, which plugins import. The list only shrinks, and so does
each number in it."""

MOST_PARAMETERS = 8
"""Parameters of a constructor."""

MORE_PARAMETERS = {
    "LLMAgent": 10,
    "ModelPool": 9,
}
"""Classes with more. The list only shrinks, and so does each number in it."""


def modules_by_folder() -> dict[str, int]:
    """Folders with code -> their modules, without those of sub-folders and without `__init__`."""
    return {
        folder.relative_to(ROOT).as_posix(): len([each for each in folder.glob("*.py") if each.stem != "__init__"])
        for package in PACKAGES
        for folder in [package, *(path.parent for path in package.rglob("*/__init__.py"))]
    }


def constructors() -> dict[str, int]:
    """Classes with a constructor of their own -> its parameters, without `self`."""
    found = {}
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    for method in node.body:
                        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                            given = method.args
                            parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs][1:]
                            found[node.name] = max(found.get(node.name, 0), len(parameters))
    return found


def test_no_folder_has_more_modules_than_it_should() -> None:
    found = modules_by_folder()
    assert len(found) > 50, "they are found"
    assert {name: number for name, number in found.items() if number > MOST_MODULES} == MORE_MODULES


def test_no_constructor_has_more_parameters_than_it_should() -> None:
    found = constructors()
    assert len(found) > 50, "they are found"
    assert {name: number for name, number in found.items() if number > MOST_PARAMETERS} == MORE_PARAMETERS
