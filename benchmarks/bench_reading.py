"""Count how many malformed replies are read as expected, requested again, or misread.

    python benchmarks/bench_reading.py [--json]

The corpus `plugins/wsap-llm/tests/data/malformed_replies.jsonl` has handwritten replies of the kinds reported for small
models, each with the intended action in one of several worlds, or none; `ask` marks those whose action is expressed
only in prose or other words (`go left`), which must be requested again. The reference is strict reading (`json.loads`,
and parameters as declared).

Goal: at least 300 replies, 95 % read as expected, none misread. The exit status is 1 if it is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wsap_core.protocol import ActionDef, ParamDef, Tool
from wsap_core.worlds.legality import check_parameters
from wsap_llm.reply import NotUnderstood, ToolCall, read_reply

DATA = Path(__file__).resolve().parent.parent / "plugins" / "wsap-llm" / "tests" / "data"
GOAL = 0.95
LEAST = 300

Meaning = Mapping[str, Any] | None
"""`{"action" or "tool": name, "params": {...}}`, or None for a reply that means nothing (Any: JSON)."""


class Space:
    """One world's actions and tools."""

    def __init__(self, spaces: Mapping[str, Any], name: str) -> None:
        space = spaces[name]
        self.actions = [_action(written) for written in space["actions"]]
        self.tools = [Tool(t["name"], parameters=_parameters(t)) for t in space.get("tools", ())]
        self.declared = (
            [_action(written) for written in spaces[space["declared"]]["actions"]] if "declared" in space else []
        )

    def tolerant(self, reply: str) -> Meaning:
        """Return the action that WSAP reads."""
        read = read_reply(reply, self.actions, self.tools, declared=self.declared)
        if isinstance(read, NotUnderstood):
            return None
        if isinstance(read.choice, ToolCall):
            return {"tool": read.choice.name, "params": dict(read.choice.parameters)}
        return {"action": read.choice.name, "params": dict(read.choice.parameters)}

    def strict(self, reply: str) -> Meaning:
        """Return the action of an exactly well-formed reply."""
        try:
            found = json.loads(reply)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        for key, offered in (("action", self.actions), ("tool", self.tools)):
            given = found.get("params", {})
            for one in offered:
                if found.get(key) == one.name and isinstance(given, dict):
                    accepted, reason = check_parameters(ActionDef(one.name, "", one.parameters), given)
                    return None if reason else {key: one.name, "params": accepted}
        return None


def _parameters(written: Mapping[str, Any]) -> tuple[ParamDef, ...]:
    return tuple(ParamDef(**p) for p in written.get("parameters", ()))


def _action(written: Mapping[str, Any]) -> ActionDef:
    return ActionDef(written["name"], parameters=_parameters(written))


def measure(rows: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Meaning]) -> dict[str, Any]:
    """Return a reader's shares of replies read as expected and requested again, and its count of misread replies."""
    got = [(read(row), row["intended"], None if row.get("ask") else row["intended"]) for row in rows]
    meant = [(found, wanted) for found, wanted, _ in got if wanted is not None]
    return {
        "as_expected": sum(found == wanted for found, _, wanted in got) / len(got),
        "asked_again": sum(found is None for found, _, _ in got) / len(got),
        "asked_again_of_those_that_mean_something": sum(found is None for found, _ in meant) / len(meant),
        "read_as_something_else": sum(found is not None and found != wanted for found, wanted, _ in got),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Count how many malformed replies are read as intended.")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    written = json.loads((DATA / "reply_spaces.json").read_text(encoding="utf-8"))
    spaces = {name: Space(written, name) for name in written}
    rows = [json.loads(line) for line in (DATA / "malformed_replies.jsonl").read_text(encoding="utf-8").splitlines()]
    found: dict[str, Any] = {
        "replies": len(rows),
        "kinds": len({row["kind"] for row in rows}),
        "tolerant": measure(rows, lambda row: spaces[row["space"]].tolerant(row["reply"])),
        "strict": measure(rows, lambda row: spaces[row["space"]].strict(row["reply"])),
    }
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{found['replies']} replies of {found['kinds']} kinds")
        for name in ("tolerant", "strict"):
            got = found[name]
            print(
                f"{name:>9}: {got['as_expected']:.1%} as expected, {got['asked_again']:.1%} asked again "
                f"({got['asked_again_of_those_that_mean_something']:.1%} of those that mean something), "
                f"{got['read_as_something_else']} read as something else"
            )
    own = found["tolerant"]
    reached = own["as_expected"] >= GOAL and not own["read_as_something_else"]
    return 0 if reached and len(rows) >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
