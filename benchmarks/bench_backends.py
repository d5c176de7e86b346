"""Measure the cost of model calls over HTTP: 500 requests in flight against a server with a latency of one second.

    python benchmarks/bench_backends.py [--quick] [--json]

The server speaks OpenAI's protocol in its own process; the pieces of a streamed reply are spread over the latency.
Each client has its own process, so that its memory is separate; its first requests are spread over the latency, like
those of many agents, and each is followed by the next at once.

Measures `openai/<model>`, whole and streamed, bare and with the middleware of `Models`, and bare httpx if installed:
the client's CPU time per call (event loop, HTTP, JSON), calls per second relative to the ideal (requests in flight /
latency), and peak memory.

Goal: 90 % of the ideal, whole and streamed. The exit status is 1 if it is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "plugins" / "wsap-llm" / "tests"
MODEL = "qwen3:8b"
PROMPT = "You see a tree to the north and a cow to the west. " * 40
WORDS = 40
"""Words of a reply, and pieces if it is streamed."""
GOAL = 0.9
CASES = ("whole", "streamed", "whole, wrapped", "streamed, wrapped", "httpx, whole", "httpx, streamed")


@contextmanager
def server(latency: float, text: str = "word " * WORDS, pieces: int = WORDS) -> Iterator[int]:
    """Run the server in a new process and yield its port; a streamed text has that many pieces."""
    command = [sys.executable, "-m", "llm_server", str(latency), str(pieces), text]
    with subprocess.Popen(command, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(20)


def asker(case: str, base: str) -> tuple[Callable[[], Awaitable[str]], Callable[[], Awaitable[Any]]]:
    """Return a function that makes one call, and one that closes the client."""
    streamed = "streamed" in case
    if case.startswith("httpx"):
        return _httpx(base, streamed=streamed)
    from wsap_core.host import PluginHost
    from wsap_core.seams.model import Message, Request
    from wsap_llm.backends.openai.backend import OpenAIBackend
    from wsap_llm.backends.openai.options import OpenAIOptions
    from wsap_llm.backends.pool import ModelPool, RequestPolicy
    from wsap_llm.middleware.budgets import Budget

    request = Request([Message("system", "Play."), Message("user", PROMPT)])
    backend: Any
    close: Any
    if "wrapped" in case:
        options = {"openai": {"base_url": base, "stream": streamed}}
        budget = Budget("run", tokens=10**12)
        models = ModelPool(
            PluginHost.discovered(), options=options, policy=RequestPolicy(concurrency=10_000), budgets=[budget]
        )
        backend, close = models.backend(f"openai/{MODEL}"), models.aclose
    else:
        backend = OpenAIBackend(MODEL, OpenAIOptions(base_url=base, stream=streamed))
        close = backend.aclose

    async def ask() -> str:
        return str((await backend.complete(request)).text)

    return ask, close


def _httpx(base: str, *, streamed: bool) -> tuple[Callable[[], Awaitable[str]], Callable[[], Awaitable[Any]]]:
    import httpx

    client = httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None, max_keepalive_connections=None))
    messages = [{"role": "system", "content": "Play."}, {"role": "user", "content": PROMPT}]
    body = {"model": MODEL, "messages": messages, "max_tokens": 300}

    async def ask() -> str:
        if not streamed:
            answer = await client.post(f"{base}/chat/completions", json=body)
            return str(answer.json()["choices"][0]["message"]["content"])
        said: list[str] = []
        async with client.stream("POST", f"{base}/chat/completions", json={**body, "stream": True}) as answer:
            lines = answer.aiter_lines()
            said += [_said(line) async for line in lines]
        return "".join(said)

    return ask, client.aclose


def _said(line: str) -> str:
    if not line.startswith("data: {"):
        return ""
    choices = json.loads(line[6:])["choices"]
    return (choices[0]["delta"].get("content") or "") if choices else ""


async def measure(case: str, port: int, in_flight: int, rounds: int, latency: float) -> dict[str, float]:
    """Keep requests in flight for some multiples of the latency, and return the figures of the steady state."""
    ask, close = asker(case, f"http://127.0.0.1:{port}/v1")
    expected = "word " * WORDS

    calls = 0
    ended = False

    async def go(number: int) -> None:
        nonlocal calls
        await asyncio.sleep(latency * number / in_flight)
        while not ended:
            assert await ask() == expected
            calls += 1

    async with asyncio.TaskGroup() as group:
        for number in range(in_flight):
            group.create_task(go(number))
        await asyncio.sleep(2.5 * latency)  # connections are made, and the flow is even
        before, began, used = calls, time.perf_counter(), time.process_time()
        await asyncio.sleep(rounds * latency)
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        counted, ended = calls - before, True
    await close()
    return {
        "calls": counted,
        "cpu_ms_per_call": processor / max(1, counted) * 1000,
        "calls_per_second": counted / seconds,
        "share_of_ideal": counted / seconds / (in_flight / latency),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_own_process(case: str, arguments: argparse.Namespace, port: int) -> dict[str, float]:
    """Measure one case in a new process."""
    command = [sys.executable, __file__, "--case", case, "--port", str(port), "--rounds", str(arguments.rounds)]
    command += ["--in-flight", str(arguments.in_flight), "--latency", str(arguments.latency)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return dict(json.loads(done.stdout))


def main() -> int:
    """Measure all cases; 1 if ours misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few requests and little latency, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--in-flight", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--ours", action="store_true", help="leave httpx out, which takes longest")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.in_flight, arguments.rounds, arguments.latency = 20, 3, 0.2
    if arguments.case:
        found = measure(arguments.case, arguments.port, arguments.in_flight, arguments.rounds, arguments.latency)
        print(json.dumps(asyncio.run(found)))
        return 0
    beside = not arguments.ours and importlib.util.find_spec("httpx") is not None
    cases = [c for c in CASES if beside or not c.startswith("httpx")]
    with server(arguments.latency) as port:
        figures = {case: in_own_process(case, arguments, port) for case in cases}
    ours = [case for case in cases if not case.startswith("httpx")]
    reached = all(figures[case]["share_of_ideal"] >= GOAL for case in ours)
    ratios = {
        kind: figures[f"httpx, {kind}"]["cpu_ms_per_call"] / figures[kind]["cpu_ms_per_call"]
        for kind in ("whole", "streamed")
        if f"httpx, {kind}" in figures
    }
    report = {"in_flight": arguments.in_flight, "latency": arguments.latency, "goal": GOAL, "reached": reached}
    if arguments.json:
        print(json.dumps(report | {"figures": figures, "httpx_over_ours": ratios}, indent=2))
    else:
        _print(figures, ratios, arguments)
    return 0 if reached or arguments.quick else 1


def _print(figures: dict[str, dict[str, float]], ratios: dict[str, float], arguments: argparse.Namespace) -> None:
    print(f"{arguments.in_flight} requests in flight, {arguments.latency:g} s latency, {WORDS} pieces a reply")
    print(f"{'':20}{'CPU ms/call':>12}{'calls/s':>10}{'of ideal':>10}{'peak MB':>10}")
    for case, row in figures.items():
        print(
            f"{case:20}{row['cpu_ms_per_call']:12.2f}{row['calls_per_second']:10.1f}"
            f"{row['share_of_ideal']:10.1%}{row['peak_memory_mb']:10.0f}"
        )
    for kind, ratio in ratios.items():
        print(f"httpx takes {ratio:.1f} times the processor time, {kind}")


if __name__ == "__main__":
    sys.exit(main())
