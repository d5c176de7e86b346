"""Set the version of all distributions of this repository and their requirements on each other.

python tools/bump.py 0.2.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


def project_files(root: Path) -> list[Path]:
    """Return the `pyproject.toml` of every distribution under `root`, the kernel's first."""
    worlds = sorted(root.glob("plugins/*/pyproject.toml"))
    return [root / "pyproject.toml", root / "nexus" / "pyproject.toml", *worlds]


def package_files(root: Path) -> list[Path]:
    """Return the `__init__.py` files that contain the version, too."""
    found = (next(path.parent.glob("wsap_*/__init__.py"), None) for path in project_files(root))
    return [path for path in found if path and "\n__version__ = " in path.read_text(encoding="utf-8")]


def bumped(text: str, version: str) -> str:
    """Return the text of a `pyproject.toml` or `__init__.py` with its version and required siblings' set to `version`.

    Raises ValueError unless the text has exactly one version line.
    """
    line = re.compile(r'^(__version__|version) = ".*"$', flags=re.MULTILINE)
    text, found = line.subn(rf'\1 = "{version}"', text)
    if found != 1:
        raise ValueError(f"expected one version line, found {found}")
    return re.sub(r'"(wsap-[a-z0-9-]+(?:\[[a-z,]+\])?)~=[^"]+"', rf'"\1~={version}"', text)


def main(arguments: list[str]) -> int:
    """Rewrite the files; 2 if the version is missing or malformed."""
    if len(arguments) != 1 or not VERSION.fullmatch(arguments[0]):
        print("Give one version, such as 0.2.0 or 0.2.0rc1.", file=sys.stderr)
        return 2
    for path in [*project_files(ROOT), *package_files(ROOT)]:
        path.write_text(bumped(path.read_text(encoding="utf-8"), arguments[0]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
