"""A trajectory played in another process: `python -m wsap_check.trajectory`.

The request comes as JSON on standard input; the answer is JSON on standard output, a digest for
each step.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wsap_check.play import RandomPlayer, Table
from wsap_check.raised import describe
from wsap_check.steps import Step
from wsap_check.subject import Fault, NothingToCheck, Subject, kept_alive
from wsap_core.loading import load_object, portable_reference
from wsap_core.specs import AdapterSpec

HASH_SEEDS = {1: "WSAP-5:45", 2: "WSAP+9:30"}
"""PYTHONHASHSEED of the other processes, and their time zones, at half and quarter hours from anybody's own."""

_SECONDS = 600
_SPEC = ("name", "abilities", "seats", "seat_names", "timing", "preset", "language")
"""What of a spec matters to play, and to snapshots, which carry its name."""


@dataclass(frozen=True)
class Request:
    """What another process needs to know to play the same game."""

    factory: str
    """Where the game is found, as `load_object` takes it."""
    spec: Mapping[str, Any]
    """What else of its spec matters. Any: fields of a spec."""
    seed: int
    steps: int
    config: Mapping[str, Any]
    """JSON-ready. Any: options as the user gave them."""
    play_seed: int = 31
    """Of the choices."""
    snapshot: str = ""
    """A snapshot to go on from, in base64; empty for a fresh start."""

    @classmethod
    def of(cls, subject: Subject) -> Request:
        """Return the request for a subject.

        Raises:
            NothingToCheck: another process can't find or configure the game.
        """
        factory = portable_reference(subject.spec.factory)
        if factory is None:
            raise NothingToCheck("no other process can find a class that was made inside a function, or an object")
        try:
            json.dumps(dict(subject.config))
        except (TypeError, ValueError):
            raise NothingToCheck("the options can't be handed to another process as JSON") from None
        said = {name: getattr(subject.spec, name) for name in _SPEC}
        return cls(factory, said, subject.seed, subject.steps, dict(subject.config))

    def subject(self) -> Subject:
        """Return the subject here that the request describes."""
        said: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in self.spec.items()}
        spec = AdapterSpec(summary="", factory=load_object(self.factory), **said)
        return Subject(spec, self.seed, self.steps, self.config)


def digests(trace: Sequence[Step]) -> list[str]:
    """Return a short digest of each step."""
    return [hashlib.sha256(step.text().encode()).hexdigest()[:16] for step in trace]


def first_different(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Return the position of the first difference between two sequences, None if they are equal."""
    pairs = enumerate(itertools.zip_longest(one, other))
    return next((position for position, (a, b) in pairs if a != b), None)


def trajectories_elsewhere(request: Request) -> Iterator[tuple[int, list[str]]]:
    """Play in other processes, with another hash seed, time zone and working folder each.

    Raises:
        Fault: such a process fails.
    """
    path = json.dumps([str(Path.cwd() / folder) for folder in sys.path])
    for hash_seed, zone in HASH_SEEDS.items():
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", _CHILD, path], input=json.dumps(asdict(request)), cwd=folder,
                env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "TZ": zone},
                capture_output=True, text=True, timeout=_SECONDS, check=False,
            )  # fmt: skip
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Fault(f"In another process the game could not be played: {last}")
        yield hash_seed, json.loads(done.stdout.strip().splitlines()[-1])


# The path is set before anything is imported, so that the child finds what the parent found.
_CHILD = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from wsap_check.trajectory import main
main()
"""


def main() -> None:
    """Answer one request; where the game raises, exit with a line that says where."""
    request = Request(**json.load(sys.stdin))
    try:
        answer = asyncio.run(kept_alive(_play(request)))
    except Fault as fault:
        sys.exit(str(fault))
    except Exception as error:
        sys.exit(describe(error))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


async def _play(request: Request) -> list[str]:
    table = await Table(request.subject()).begin()
    if request.snapshot:
        table.world.restore(base64.b64decode(request.snapshot))
    return digests(await table.play(RandomPlayer(request.play_seed), request.steps, episodes=not request.snapshot))


if __name__ == "__main__":
    main()
