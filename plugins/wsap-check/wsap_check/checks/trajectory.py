"""Plays a trajectory in another process: a request as JSON on standard input, a digest per step on standard output."""

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
from pathlib import Path
from typing import Any

from wsap_check.play import RandomPlayer, Table
from wsap_check.raised import describe
from wsap_check.steps import Step
from wsap_check.subject import Fault, NothingToCheck, Subject, kept_alive
from wsap_core.loading import load_object, portable_reference
from wsap_core.spec_json import spec_of_json, spec_to_json

HASH_SEEDS = {1: "WSAP-5:45", 2: "WSAP+9:30"}
"""PYTHONHASHSEED and an unusual time zone of each other process."""

_SECONDS = 600

Request = Mapping[str, Any]
"""The arguments of `_play`."""


def request_for(subject: Subject) -> Request:
    """Return the request to play a subject's game; `NothingToCheck` if another process can't find or configure it."""
    factory = portable_reference(subject.spec.factory)
    if factory is None:
        raise NothingToCheck("another process can't import a class defined inside a function, or an object")
    try:
        config, spec = json.dumps(dict(subject.config)), json.dumps(spec_to_json(subject.spec))
    except (TypeError, ValueError):
        raise NothingToCheck("the options can't be passed to another process as JSON") from None
    return {"factory": factory, "spec": spec, "seed": subject.seed, "steps": subject.steps, "config": config}


def digests(trace: Sequence[Step]) -> list[str]:
    """Return a short digest of each step."""
    return [hashlib.sha256(step.text().encode()).hexdigest()[:16] for step in trace]


def first_different(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Return the index of the first difference between two sequences, or None if they are equal."""
    pairs = enumerate(itertools.zip_longest(one, other))
    return next((position for position, (a, b) in pairs if a != b), None)


def trajectories_elsewhere(request: Request) -> Iterator[tuple[int, list[str]]]:
    """Play in processes with different hash seeds, time zones and working folders; yield hash seed and digests.
    `Fault` if a process fails."""
    path = json.dumps([str(Path.cwd() / folder) for folder in sys.path])
    for hash_seed, zone in HASH_SEEDS.items():
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", _CHILD, path], input=json.dumps(request), cwd=folder,
                env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "TZ": zone},
                capture_output=True, text=True, timeout=_SECONDS, check=False,
            )  # fmt: skip
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Fault(f"In another process the game could not be played: {last}")
        yield hash_seed, json.loads(done.stdout.strip().splitlines()[-1])


# The path is set before the imports, so that the child finds the same modules.
_CHILD = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from wsap_check.checks.trajectory import main
main()
"""


def main() -> None:
    """Answer one request, or exit with one line about the error."""
    try:
        answer = asyncio.run(kept_alive(_play(**json.load(sys.stdin))))
    except Fault as fault:
        sys.exit(str(fault))
    except Exception as error:
        sys.exit(describe(error))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


async def _play(
    factory: str, spec: str, seed: int, steps: int, config: str, play_seed: int = 31, snapshot: str = ""
) -> list[str]:
    """Play from a snapshot (in base64) or the start, with choices by the seed `play_seed`."""
    subject = Subject(spec_of_json(json.loads(spec), load_object(factory)), seed, steps, json.loads(config))
    table = await Table(subject).begin()
    if snapshot:
        table.world.restore(base64.b64decode(snapshot))
    return digests(await table.play(RandomPlayer(play_seed), steps, episodes=not snapshot, cut=not snapshot))


if __name__ == "__main__":
    main()
