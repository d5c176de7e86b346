"""Check that built wheels contain exactly the files of their packages.

python tools/check_wheels.py FOLDER-OF-WHEELS DISTRIBUTION...
"""

from __future__ import annotations

import sys
import tomllib
import zipfile
from pathlib import Path

LEFTOVERS = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def package_files(package: Path) -> set[str]:
    """Return the files that a wheel of `package` must contain, as paths inside it."""
    files = (path.relative_to(package.parent) for path in package.rglob("*") if path.is_file())
    return {path.as_posix() for path in files if not LEFTOVERS.intersection(path.parts)}


def faults(project: Path, wheels: Path) -> list[str]:
    """Return the faults of the wheel of a `pyproject.toml`, as sentences."""
    data = tomllib.loads(project.read_text(encoding="utf-8"))
    name, version = data["project"]["name"].replace("-", "_"), data["project"]["version"]
    wheel = wheels / f"{name}-{version}-py3-none-any.whl"
    if not wheel.is_file():
        return [f"{wheel.name} was not built."]
    with zipfile.ZipFile(wheel) as archive:
        held = {item for item in archive.namelist() if not item.endswith("/")}
        info = {item.split("/", 1)[1] for item in held if item.startswith(f"{name}-{version}.dist-info/")}
        code = {item for item in held if ".dist-info/" not in item}
    wanted = package_files(project.parent / name)
    found = [f"{wheel.name} lacks {item}." for item in sorted(wanted - code)]
    found += [f"{wheel.name} contains {item}, which does not belong to it." for item in sorted(code - wanted)]
    found += [f"{wheel.name} contains tests: {item}." for item in sorted(code) if "tests" in Path(item).parts]
    empty = not (project.parent / name).is_dir()  # it only requires others
    declares = {"entry-points", "scripts"} & data["project"].keys()
    for item in ("METADATA", *(("entry_points.txt",) if declares else ()), "licenses/LICENSE"):
        if item not in info:
            found.append(f"{wheel.name} lacks {item} in its metadata.")
    if not empty and f"{name}/py.typed" not in code:
        found.append(f"{wheel.name} lacks py.typed, without which type checkers ignore its annotations.")
    return found


def main(arguments: list[str]) -> int:
    """Print all faults; 1 if there are any."""
    wheels, *distributions = map(Path, arguments)
    found = [fault for path in distributions for fault in faults(path.resolve() / "pyproject.toml", wheels)]
    print("\n".join(found) or f"{len(distributions)} wheels are complete.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
