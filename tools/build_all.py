"""Build distributions: the source distribution of each, and its wheel from that.

python tools/build_all.py FOLDER DISTRIBUTION...

As `python -m build` does for each, but those that require the same share one isolated environment of just that.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from itertools import groupby
from pathlib import Path

from build import ProjectBuilder
from build.env import DefaultIsolatedEnv


def build_one(env: DefaultIsolatedEnv, path: Path, folder: Path) -> Path:
    """Build a distribution into `folder`, and return its wheel."""
    source = Path(ProjectBuilder.from_isolated_env(env, path).build("sdist", folder))
    with tempfile.TemporaryDirectory() as tmp, tarfile.open(source) as archive:
        archive.extractall(tmp, filter="data")
        unpacked = Path(tmp, source.name.removesuffix(".tar.gz"))
        return Path(ProjectBuilder.from_isolated_env(env, unpacked).build("wheel", folder))


def main(arguments: list[str]) -> int:
    """Build all, and print the names of the wheels."""
    folder, *paths = (Path(item).resolve() for item in arguments)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(sorted(ProjectBuilder(path).build_system_requires), path) for path in paths]
    for requires, group in groupby(sorted(wanted), key=lambda item: item[0]):
        with DefaultIsolatedEnv() as env:
            env.install(requires)
            for _, path in group:
                print(build_one(env, path, folder).name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
