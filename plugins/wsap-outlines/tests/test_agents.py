"""Agents with a model that knows nothing, in real worlds, through the runtime: every reply is understood as it stands.

Crafter and the matrix game are played by the agent `llm` with its own prompts and the default limit of
300 tokens, recorded, and every reply is read again from the log by code that has nothing in common
with what bound it: `json.loads`, a validator of JSON Schema, and a plain list of tags.
"""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hosts import host_with_ours

from wsap_core import PluginHost
from wsap_core.host import Registration
from wsap_core.seams.context import Context
from wsap_core.seams.services import Services
from wsap_core.specs import BackendSpec

pytest.importorskip("torch", reason="needs torch: `nox -s models` runs these")
pytest.importorskip("wsap_crafter")

TAG = re.compile(r"<(/?)([A-Za-z_][\w.\-]*)(/?)>")


@pytest.fixture
def host(model: Any, tokenizer: Any) -> PluginHost:
    """The built-in worlds and tools, Crafter, the agent `llm`, and `outlines/tiny` in this process."""
    from wsap_crafter import plugin as crafter
    from wsap_outlines.backend import OutlinesBackend
    from wsap_outlines.models.loading import adopt

    def create(context: Context) -> OutlinesBackend:
        return OutlinesBackend("tiny", loader=lambda _, options: adopt(model, tokenizer, options))

    own = host_with_ours()
    for spec in crafter.wsap_adapters():
        own.games.add(Registration(spec, "wsap-crafter", "t"))
    own.backends.add(Registration(BackendSpec("outlines", "", create), "t", "t"))
    return own


def played(
    host: PluginHost, folder: Path, game: str, seats: tuple[str, ...], steps: int, *, seed: int = 5, **options: Any
) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """The summary of a run, its calls to the model, and its steps."""
    from wsap_llm.backends.pool import ModelPool
    from wsap_nexus.runs.plan import RunPlan, SeatPlan
    from wsap_nexus.runs.session import start
    from wsap_nexus.runs.store import open_store

    given = {"model": "outlines/tiny", "plan": "no", "window": 2, "strict": True, "style": "json", "profile": "full"}
    given |= options
    plan = RunPlan(game, tuple(SeatPlan(seat, "llm", given) for seat in seats), steps=steps, seed=seed)
    models = ModelPool(host)
    with open_store(str(folder / "runs.db")) as store:
        with start(plan, host, store, services=Services(models=models)) as session:

            async def to_the_end() -> dict[str, Any]:
                async with models:
                    return (await session.play()).to_json()

            summary = asyncio.run(to_the_end())
        events = [(e.kind, e.data) for e in store.repository.read_events(str(session.run.run_id))]
    return summary, [d for kind, d in events if kind == "call"], [d for kind, d in events if kind == "step"]


def played_on(
    host: PluginHost, folder: Path, game: str, decisions: int, **options: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The calls and steps of so many decisions at least, over several runs: who knows nothing soon leaves a world."""
    seats = ("one", "two") if game == "matrix" else ("seat-1",)
    calls: list[dict[str, Any]] = []
    taken: list[dict[str, Any]] = []
    for seed in range(200):
        summary, more, done = played(host, folder, game, seats, decisions, seed=seed, **options)
        flaws = {name: summary["decisions"][name] for name in ("repaired", "forced", "unconstrained", "cut")}
        assert flaws == dict.fromkeys(flaws, 0)
        calls += more
        taken += done
        if len(taken) >= decisions:
            return calls, taken
    raise AssertionError("it always leaves at once")


@pytest.mark.parametrize("tools", ["", "calculator,notes"], ids=["without tools", "with tools"])
@pytest.mark.parametrize("game", ["crafter", "matrix"])
def test_in_json_every_reply_of_a_model_that_knows_nothing_is_what_was_asked_for(
    host: PluginHost, tmp_path: Path, game: str, tools: str
) -> None:
    calls, taken = played_on(host, tmp_path, game, 10, tools=tools)
    for call in calls:
        reply, schema = call["reply"], call["constraint"]["schema"]
        assert reply["finish"]["reason"] == "stop"
        assert reply["finish"]["usage"]["completion_tokens"] <= 300
        jsonschema.Draft202012Validator(schema).validate(json.loads(reply["text"]))
    said = [json.loads(c["reply"]["text"]) for c in calls]
    moves = [[s["action"], s["params"]] for s in said if "action" in s]
    # A lookup that repeats the one before is answered from the turn's own record.
    again = [move == before and move[0] in ("inspect_self", "look") for before, move in pairwise([None, *moves])]
    acted = sorted(json.dumps(m, sort_keys=True) for m, repeated in zip(moves, again, strict=True) if not repeated)
    done = sorted(
        json.dumps([a["name"], a["parameters"]], sort_keys=True) for a in (s["step"]["action"] for s in taken)
    )
    assert acted == done, "what was said is what was done"
    assert len({a["action"] for a in said if "action" in a}) > 1
    # In ten decisions it may choose no tool; that it can is seen in what it is bound to.
    assert all(('"calculator"' in json.dumps(call["constraint"]["schema"])) == bool(tools) for call in calls)
    assert bool(tools) or not any("tool" in s for s in said)


@pytest.mark.parametrize("game", ["crafter", "matrix"])
def test_in_tags_every_turn_is_well_formed_and_goes_on_after_a_tool_with_what_was_kept(
    host: PluginHost, tmp_path: Path, game: str
) -> None:
    calls, taken = played_on(host, tmp_path, game, 40, style="tags", tools="calculator,notes")
    lookups = {"look", "inspect_self"}  # of the game, answered in the same turn
    tools = {"calculator", "notes", *lookups}
    used = looked = repeated = 0
    looks = False
    this_turn: set[str] = set()
    for call in calls:
        text = call["reply"]["text"]
        assert call["reply"]["finish"]["reason"] == "stop"
        assert call["reply"]["finish"]["usage"]["completion_tokens"] <= 300
        assert re.fullmatch(call["constraint"]["pattern"], text)
        text = re.sub(r"<(\w+)/>", r"<\1></\1>", text)
        names = [(slash, name) for slash, name, _ in TAG.findall(text) if name in tools or name == "thinking"]
        assert "<" not in TAG.sub("", text)
        if names[0] == ("/", "thinking"):
            assert len(names) == 1, "after the thinking there is one action and nothing else"
            this_turn, looks = set(), False
        else:
            assert [name for _, name in names] == [names[0][1]] * 2
            assert [slash for slash, _ in names] == ["", "/"]
            name = names[0][1]
            looks = name in lookups
            looked += looks
            used += name not in lookups
            lookup = text[text.index(f"<{name}>") :]
            repeated += name in lookups and lookup in this_turn
            this_turn.add(lookup)
    assert used + looked > 0
    # A lookup is recorded as a step, unless it repeats one of the same turn.
    assert len(calls) == len(taken) + used + repeated, "each turn ends in exactly one action"
    ways = [s["decision"]["resumption"] for s in taken]
    assert set(ways) <= {None, "resume"}
    assert ways.count("resume") > 0
    after = [c for c in calls if "<observation>" in c["prefill"]]
    assert len(after) == used + looked - looks, "each lookup is gone on from, but for one that ends the run"
    assert all(c["prefill"].count("<thinking>") == 1 and "</thinking>" not in c["prefill"] for c in after)


def test_a_run_in_process_is_played_again_from_its_log_without_the_model(host: PluginHost, tmp_path: Path) -> None:
    from wsap_nexus.runs.session import replies_of, start
    from wsap_nexus.runs.store import open_store

    summary, _, _ = played(host, tmp_path, "crafter", ("seat-1",), 8, style="tags", tools="calculator")
    host.backends = type(host.backends)(BackendSpec, "backend", "backends")  # there is nobody left to ask
    with open_store(str(tmp_path / "runs.db")) as store:
        again, past = replies_of("last", store)
        with start(again, host, store, past=past) as session:
            second = asyncio.run(session.play())
    assert second.trajectory_hash == summary["trajectory_hash"]
