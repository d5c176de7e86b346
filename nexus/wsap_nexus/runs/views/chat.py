"""Recorded decisions of models as chat conversations, for training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import WireError
from wsap_core.seams.agent import DecisionInfo
from wsap_nexus.runs.record.journal import read_reply
from wsap_nexus.runs.record.logged import read_decision
from wsap_nexus.store.records import RunRecord
from wsap_nexus.store.repository import Repository

# Any, in this module: JSON.

DECIDING = ("decide", "tool", "re-ask")
"""Purposes of calls that yield a decision."""


@dataclass
class ChatCounts:
    """Counts of exported and skipped decisions."""

    lines: int = 0
    forced: int = 0
    """Skipped because the model's reply could not be used."""
    unasked: int = 0
    """Steps without a model call: those of other agents, or later steps of a decision for several steps."""
    of_world: int = 0
    """Calls of the world itself, such as a storyteller's, which decide for no seat."""


def chat_lines(
    repository: Repository, run: RunRecord, counts: ChatCounts, *, with_forced: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield a JSON-ready line for each decision of a model in a run, in the order of its steps.

    Its `messages` are those of the request that yielded the decision, followed by the reply. Pictures are replaced by
    their descriptions. Requests for plans and reflections are not included.

    Args:
        counts: updated in place.
        with_forced: include forced decisions, marked by `forced`; their action is not the one in the reply.

    Raises:
        WireError: an event is damaged.
    """
    models = {str(s["name"]): s["options"].get("model") for s in run.config.get("seats", ())}
    sent: dict[str, list[dict[str, str]]] = {}
    decided: dict[str, tuple[list[dict[str, str]], str]] = {}
    for event in repository.read_events(run.id, kinds=("call", "step")):
        if event.seat is None:  # a call of the world itself
            counts.of_world += event.kind == "call"
            continue
        try:
            data: Any = event.data
            if event.kind == "call":
                before = sent.get(event.seat, [])[: int(data["shared"])]
                sent[event.seat] = [*before, *map(_message, data["messages"])]
                if data["purpose"] in DECIDING:
                    reply = read_reply(data["reply"])
                    said = {"role": "assistant", "content": f"{data['prefill'] or ''}{reply.message.text()}"}
                    decided[event.seat] = [*sent[event.seat], said], reply.thinking or ""
                continue
            info = read_decision(data["decision"]) or DecisionInfo()
            chat = decided.pop(event.seat, None)
            if chat is None:
                counts.unasked += 1
            elif info.forced and not with_forced:
                counts.forced += 1
            else:
                counts.lines += 1
                yield {
                    "messages": chat[0], "thinking": chat[1], "run": run.id, "game": run.game, "seat": event.seat,
                    "model": models.get(event.seat), "episode": event.episode, "step": event.step,
                    "action": data["step"]["action"], "reward": data["step"]["result"]["reward"],
                    "success": data["step"]["result"]["success"], "forced": info.forced, "repaired": info.repaired,
                }  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WireError(f"Event {event.seq} of run {run.id!r} ({event.kind}) is damaged: {error}.") from error


def _message(message: Mapping[str, Any]) -> dict[str, str]:
    content: str | Sequence[Mapping[str, Any]] = message["content"]
    if not isinstance(content, str):
        content = "".join(str(part.get("text", part.get("alt", ""))) for part in content)
    return {"role": str(message["role"]), "content": content}
