"""What is exported is what was read and written: by models through the kernel's agent, and in recorded runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from wsap_core.cli.app import run
from wsap_core.protocol import Action
from wsap_core.seams.model import Abilities, Request
from wsap_llm.agent import LLMAgent
from wsap_llm.decision.styles import JsonStyle, TagStyle
from wsap_llm.export import Dialect, system_prompts, turn_messages
from wsap_llm.options.llm import LLMOptions
from wsap_llm.scripted import ScriptedBackend
from wsap_tossim.export.sources import sources_in
from wsap_tossim.export.walk import Deed, Source, Turn, Walked, walk
from wsap_tossim.options import TownOptions
from wsap_tossim.plugin import wsap_adapters
from wsap_tossim.verbs import TOOLS
from wsap_tossim.world import Town

ANSWERS = {
    "tags": ("Let me see.\n<graveyard/>", "Nothing to do.\n</thinking>\n<wait/>"),
    "json": (
        '{"action": "graveyard", "params": {}, "reasoning": "Let me see."}',
        '{"action": "wait", "params": {}, "reasoning": "Nothing to do."}',
    ),
}


async def by_models(dialect: Dialect) -> tuple[Source, list[LLMAgent], list[list[Request]]]:
    """Let five models play through the kernel's agent; return the game, and what each was asked."""
    (spec,) = wsap_adapters()
    options = TownOptions.read({"mode": "five", "rules": "quick", "deathless_days": 2})
    town = Town(options, 7)
    begins = town.game.fork(0)
    deeds: list[Deed] = []
    agents: list[LLMAgent] = []
    asked: list[list[Request]] = []

    async def play(player: int, agent: LLMAgent) -> None:
        seat = town.seat(f"player-{player + 1}")
        await agent.initialize(seat.game_description, seat.action_space)
        done = False
        while not done:
            action = await agent.decide(await seat.observe())
            deeds.append(Deed(player, action))
            result = await seat.act(action)
            await agent.reflect(result)
            done = result.done

    for _ in range(5):
        calls: list[Request] = []

        def answer(request: Request, calls: list[Request] = calls) -> str:
            calls.append(request)
            first = not request.prefill.endswith("</observation>\n") if dialect == "tags" else len(request.messages) < 3
            return ANSWERS[dialect][0 if first else 1]

        backend = ScriptedBackend(answer, abilities=Abilities(prefill=True))
        own = LLMOptions(
            game_name=spec.name, objective=spec.objective, window=0, complete_turns=True, plan=False, constrain=False
        )
        style = TagStyle() if dialect == "tags" else JsonStyle()
        agents.append(LLMAgent(backend, own, style=style))
        asked.append(calls)
    await asyncio.wait_for(asyncio.gather(*(play(n, agent) for n, agent in enumerate(agents))), 300)
    return Source("models", options, begins, deeds, ("",) * 5), agents, asked


def turns_of(walked: Walked, player: int) -> list[Turn]:
    return [t for t in walked.turns if t.player == player]


@pytest.mark.parametrize("dialect", ["tags", "json"])
def test_a_models_turns_are_exported_as_it_read_and_wrote_them(dialect: Dialect) -> None:
    source, agents, asked = asyncio.run(by_models(dialect))
    walked = walk(source)
    assert walked.game.over
    (spec,) = wsap_adapters()
    systems = asyncio.run(
        system_prompts(
            tuple(zip(walked.descriptions, walked.spaces, strict=True)),
            dialect,
            game_name=spec.name,
            objective=spec.objective,
        )
    )
    for player, agent in enumerate(agents):
        assert systems[player] == agent.system_prompt
        turns = turns_of(walked, player)
        finals = asked[player][1::2]
        assert len(turns) == len(finals) > 1
        for turn, request in zip(turns, finals, strict=True):
            said = turn_messages(turn, dialect)
            assert said is not None
            sent = [(m.role, m.text()) for m in request.messages[1:]]
            written = request.prefill + ANSWERS[dialect][1]
            if dialect == "tags":
                assert list(said.messages) == [*sent, ("assistant", written)]
                ((begin, end),) = said.observations
                assert written[begin:end] == "<observation>Nobody is dead.</observation>"
            else:
                assert [m for m in said.messages[:-1] if m[0] == "user"] == [m for m in sent if m[0] == "user"]
                assert json.loads(said.messages[-1][1]) == json.loads(written)
                assert not said.observations
        assert asked[player][0].messages[0].text() == systems[player]


@pytest.mark.slow
def test_a_recorded_runs_turns_are_shown_as_the_run_recorded_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    options = ["--option", "mode=five", "--option", "rules=quick", "--option", "deathless_days=2"]
    assert run(["play", "tossim", *options, "--seed", "4", "--no-watch"]) == 0
    assert run(["export", "last", "--output", "run.jsonl"]) == 0
    rows = [json.loads(line) for line in Path("run.jsonl").read_text(encoding="utf-8").splitlines()]
    sources = list(sources_in(Path("run.jsonl")))
    assert [s.id for s in sources] == [f"{rows[0]['run']}/{n}" for n in (1,)]
    for episode, source in enumerate(sources):
        walked = walk(source)
        assert walked.game.over
        for player in range(5):
            # Which look-ups are not possible now is told to models below what every player sees.
            shown = [
                (t.shown.partition("\n\nNot to be looked up now: ")[0], t.action, [u.result for u in t.uses])
                for t in turns_of(walked, player)
            ]
            assert shown == recorded(rows, episode, f"player-{player + 1}")


def recorded(rows: list[dict[str, Any]], episode: int, seat: str) -> list[tuple[str, Action, list[str]]]:
    """Return a seat's turns, made from nothing but what the run says that it saw, did and was told."""
    found = []
    seen = shown = ""
    told: list[str] = []
    for row in rows[1:]:
        if row["episode"] != episode or row["seat"] != seat:
            continue
        if row["kind"] == "observation":
            seen = row["body"]["context"]
        elif row["kind"] == "step":
            step = row["body"]["step"]
            shown = shown or seen
            seen = step["observation"]["context"]
            if step["action"]["name"] in TOOLS:
                told.append(step["result"]["message"])
                continue
            action = Action(step["action"]["name"], step["action"]["parameters"], row["body"]["reasoning"])
            found.append((shown, action, told))
            shown, told = "", []
    return found
