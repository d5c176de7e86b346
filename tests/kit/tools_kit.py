"""The scripts in `tools/`, as modules: tests compare what they write with what is kept."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def module_at(path: Path) -> ModuleType:
    """Return the module in a file that no package holds."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tool_of(name: str) -> ModuleType:
    """Return a script of `tools/`."""
    return module_at(ROOT / "tools" / f"{name}.py")
