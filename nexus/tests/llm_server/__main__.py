"""`python -m llm_server LATENCY [WORDS]`: prints its port, and answers until its input ends."""

from __future__ import annotations

import sys

from llm_server import ModelServer, Say


def main(latency: float, words: int) -> None:
    """Serve until the standard input is closed."""
    with ModelServer(Say("word " * words, latency=latency)) as server:
        server.requests = _Forgetful()
        print(server.port, flush=True)
        sys.stdin.read()


class _Forgetful(list):  # type: ignore[type-arg]  # of whatever
    def append(self, item: object) -> None:
        """Keep nothing: a measurement sends many."""


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40)
