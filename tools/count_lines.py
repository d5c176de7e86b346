"""Print how many lines of code, and lines in all, the production modules of each distribution have.

python tools/count_lines.py
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def modules_of(distribution: Path) -> list[Path]:
    """Return the production modules below a distribution's folder; the kernel's folder is its package."""
    return [path for path in distribution.rglob("*.py") if "tests" not in path.relative_to(ROOT).parts]


def lines_of_code(text: str) -> int:
    """Return how many lines of a module are neither blank, nor comments, nor docstrings."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            told.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") and n not in told for n, line in lines)


def main() -> None:
    """Print a line for each distribution."""
    for folder in (ROOT / "wsap_core", ROOT / "nexus", *sorted((ROOT / "plugins").iterdir())):
        texts = [path.read_text(encoding="utf-8") for path in modules_of(folder)]
        code, lines = sum(map(lines_of_code, texts)), sum(len(text.splitlines()) for text in texts)
        print(f"{folder.relative_to(ROOT).as_posix():<24} {code:>7,} lines of code {lines:>8,} in all")


if __name__ == "__main__":
    main()
