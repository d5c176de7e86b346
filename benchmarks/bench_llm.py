"""Measure the overhead of a language model's decision: time, and new prompt tokens.

    python benchmarks/bench_llm.py [--steps N] [--quick] [--json]

The agent `llm` plays Crafter in the JSON style with a window of 16 steps, a backend that returns a legal action at
once, and the durable log. Without the game's time, a decision consists of rendering the prompt, parsing the reply, the
runtime and the log. Limit: a median of 0.5 ms; for reference, the time of one sorted `json.dumps` of the same request.

New tokens are those beyond the messages shared with the previous request, which a prefix cache saves. Limit: 700. They
are counted with cl100k_base if tiktoken has it, otherwise estimated.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_runtime import Stopwatch

from wsap_core.host import PluginHost, Registration
from wsap_core.protocol.wire import encode
from wsap_core.seams.context import Context
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Message, Request
from wsap_core.specs import BackendSpec
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store

TIME_LIMIT_US = 500.0
TOKEN_LIMIT = 700


class Instant:
    """A model that replies at once with a random legal action of Crafter."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._random = random.Random(0)

    def make(self, context: Context) -> ScriptedBackend:
        """Return the backend."""
        names = ["move_left", "move_right", "move_up", "move_down", "noop"]

        def answer(request: Request) -> str:
            self.requests.append(request)
            name = self._random.choice(names)
            return json.dumps({"action": name, "params": {}, "reasoning": "There may be trees further on that way."})

        return ScriptedBackend(answer, model="instant/x")


def counter() -> tuple[str, Callable[[str], int]]:
    """Return a tokenizer's name and a function that counts a text's tokens."""
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("cl100k_base")
        return "cl100k_base", lambda text: len(encoding.encode(text, disallowed_special=()))
    except Exception:  # not installed, or its table is not available offline
        return "estimated", estimate_tokens


def fresh(before: tuple[Message, ...], now: tuple[Message, ...]) -> str:
    """Return the text of the messages that a request does not share with the previous one."""
    shared = 0
    while shared < min(len(before), len(now)) and before[shared] == now[shared]:
        shared += 1
    return "".join(m.text() for m in now[shared:])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--quick", action="store_true", help="200 steps")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    steps = 200 if options.quick else options.steps

    instant = Instant()
    host = PluginHost.discovered()
    host.backends.add(Registration(BackendSpec("instant", "", instant.make), "benchmark", "benchmark"))
    seat = SeatPlan("seat-1", "llm", {"model": "instant/x", "plan": "no"})
    watch, marks = Stopwatch(), list[tuple[float, float]]()

    with tempfile.TemporaryDirectory() as folder, open_store(str(Path(folder) / "runs.db")) as store:
        plan = RunPlan("crafter", (seat,), steps=steps)
        with start(plan, host, store) as session:

            def mark(step: StepTaken) -> None:
                if not marks:
                    assert session.run.world is not None
                    for name in ("act", "observe", "reset"):
                        watch.wrap(session.run.world.adapter, name)
                marks.append((time.perf_counter(), watch.inside))

            session.run.observe(mark)
            asyncio.run(session.play())
        events = store.repository.count_events(str(session.run.run_id))
        size = sum(f.stat().st_size for f in Path(folder).iterdir())

    times = [(b - a - (y - x)) * 1e6 for (a, x), (b, y) in itertools.pairwise(marks)][20:]
    data: Any = encode(instant.requests[-1])
    references = []
    for _ in range(200):
        begun = time.perf_counter()
        json.dumps(data, sort_keys=True)
        references.append((time.perf_counter() - begun) * 1e6)
    name, count = counter()
    requests = instant.requests
    new = [count(fresh(tuple(a.messages), tuple(b.messages))) for a, b in itertools.pairwise(requests)]
    whole = [sum(count(m.text()) for m in r.messages) for r in requests[:: max(1, len(requests) // 60)]]
    found: dict[str, Any] = {
        "steps": len(marks),
        "median_us": round(statistics.median(times), 1),
        "quartiles_us": [round(q, 1) for q in statistics.quantiles(times, n=4)[::2]],
        "of_limit": round(statistics.median(times) / TIME_LIMIT_US, 2),
        "of_plain_json": round(statistics.median(times) / statistics.median(references), 2),
        "tokenizer": name,
        "new_tokens_median": statistics.median(new),
        "new_tokens_mean": round(statistics.fmean(new)),
        "of_token_limit": round(statistics.fmean(new) / TOKEN_LIMIT, 2),
        "prompt_tokens_mean": round(statistics.fmean(whole)),
        "prefix_share": round(1 - statistics.fmean(new) / statistics.fmean(whole), 3),
        "bytes_an_event": round(size / events),
    }
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        return
    low, high = found["quartiles_us"]
    print(f"{found['steps']} decisions in Crafter, JSON style, window of 16 steps, durable log")
    print(f"  time    {found['median_us']} us at the median [{low}, {high}], {found['of_limit']} of the limit,")
    print(f"          {found['of_plain_json']} of one json.dumps of the request")
    print(f"  tokens  {found['new_tokens_mean']} new a step ({name}; median {found['new_tokens_median']:g}),")
    print(f"          {found['of_token_limit']} of the limit; a prompt has {found['prompt_tokens_mean']},")
    print(f"          {found['prefix_share']:.1%} of it as in the request before")
    print(f"  log     {found['bytes_an_event']} bytes an event on disk")


if __name__ == "__main__":
    main()
