"""Seed 002's example, tool call and all: the Investigator on day 3 checks the will of Player 3 and speaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from turn_scenes import GOLDENS, investigator

from wsap_core.protocol import Action
from wsap_core.seams.model import Abilities, Request
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.decision.styles import JsonStyle, Style, TagStyle
from wsap_llm.scripted import ScriptedBackend
from wsap_tossim.plugin import wsap_adapters

THINKS = (
    "Player 4 is claiming to be the Doctor and says they healed Player 1. This contradicts the fact that Player 3 was "
    "revealed as Doctor. I need to see that will to be sure.\n"
)
GOES_ON = "The will confirms Player 3 healed Player 1 on Night 2. Player 4 is lying.\n"
SPEECH = "Player 4 is lying. I have checked Player 3's will. I strongly recommend we vote to put Player 4 on trial."
WILL = """Player 3's Will: "I am the Doctor. N1 heal Player 5. N2 heal Player 1.\""""
GOLDEN_FOLDER = Path(__file__).parent / "goldens"


def play(replies: list[str], abilities: Abilities, style: Style) -> tuple[list[Action], list[Request], str]:
    """Let a model play the Investigator's turn; return what it did, what it was asked, and what the town heard."""
    (spec,) = wsap_adapters()
    town = investigator().town()
    model = ScriptedBackend(replies, abilities=abilities)
    options = LLMOptions("ToSSim", plan=False, window=0, objective=spec.objective)
    agent = LLMAgent(model, options, style=style)

    async def turn() -> list[Action]:
        seat = town.seat("player-7")
        await agent.initialize(seat.game_description, seat.action_space)
        done: list[Action] = []
        step = (await seat.observe()).step
        while True:
            observation = await seat.observe()
            assert observation.step == step, "a tool takes no step"
            done.append(await agent.decide(observation))
            acting = asyncio.create_task(seat.act(done[-1]))
            await asyncio.sleep(0)  # the world carries it out at once; the result of a speech waits for the next turn
            if not acting.done():
                acting.cancel()
                return done
            result = await acting
            assert result.success, result.message
            await agent.reflect(result)

    done = asyncio.run(asyncio.wait_for(turn(), 300))
    said = [e.data["text"] for e in town.game.log if e.kind == "speech" and e.data["player"] == 6]
    return done, list(model.requests), said[-1]


TAGS = [f"{THINKS}<check_will>Player 3</check_will>", f"{GOES_ON}</thinking>\n<speak>{SPEECH}</speak>"]
TURNS = [f"<thinking>\n{TAGS[0]}", TAGS[1]]
JSON = [
    json.dumps({"action": "check_will", "params": {"player": "Player 3"}, "reasoning": THINKS}),
    json.dumps({"action": "speak", "params": {"text": SPEECH}, "reasoning": GOES_ON}),
]


@pytest.mark.parametrize(
    ("replies", "abilities", "style"),
    [
        (TAGS, Abilities(resume=True), TagStyle()),
        (TAGS, Abilities(prefill=True), TagStyle()),
        (TURNS, Abilities(), TagStyle()),
        (JSON, Abilities(), JsonStyle()),
    ],
    ids=["resume", "prefill", "turns", "json"],
)
def test_the_investigator_checks_a_will_in_its_thinking_and_goes_on(
    replies: list[str], abilities: Abilities, style: Style
) -> None:
    done, requests, heard = play(replies, abilities, style)
    assert [a.name for a in done] == ["check_will", "speak"]
    assert done[0].parameters == {"player": "Player 3"}
    assert heard == SPEECH
    assert len(requests) == 2
    first, second = requests
    assert first.messages[1].text().startswith((GOLDEN_FOLDER / "investigator.txt").read_text().rstrip("\n") + "\n")
    # What the model sees again: the same beginning, its own thought, and the will.
    assert [m.text() for m in second.messages[:2]] == [m.text() for m in first.messages[:2]]
    seen_again = "\n".join([*(m.text() for m in second.messages[2:]), second.prefill])
    assert THINKS.split(".")[0] in seen_again
    assert WILL in seen_again


def test_in_one_stream_the_observation_stands_where_the_tag_was_closed() -> None:
    _, requests, _ = play(TAGS, Abilities(prefill=True), TagStyle())
    assert requests[1].prefill == (
        f"<thinking>\n{THINKS}<check_will>Player 3</check_will>\n<observation>{WILL}</observation>\n"
    )


@pytest.mark.parametrize("style", [TagStyle(), JsonStyle()], ids=["tags", "json"])
def test_the_system_prompt_has_the_seeds_parts(style: Style) -> None:
    replies = TAGS if isinstance(style, TagStyle) else JSON
    _, requests, _ = play(replies, Abilities(prefill=True), style)
    system = requests[0].messages[0].text()
    for part in (
        "Your goal is to win as your role does.",  # objective
        "You are Player 7, the Investigator.",  # identity
        "Each night you may investigate another player",  # and role
        "Goal: ",
        "- check_will(player): ",  # tools
        "- speak(text): ",  # how a turn ends
        "- wait",
    ):
        assert part in system
    if isinstance(style, TagStyle):
        for tag in ("<thinking>", "<check_will>...</check_will>", "<observation>"):
            assert tag in system


@pytest.mark.parametrize("name", GOLDENS)
def test_a_turn_is_shown_as_it_was_written_down(name: str) -> None:
    scene, player = GOLDENS[name]
    assert scene().text(player) == (GOLDEN_FOLDER / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


def test_a_will_is_shown_on_the_morning_it_is_found_and_afterwards_by_the_tool_alone() -> None:
    from turn_kit import section

    scene = investigator()
    will = "N2 heal Player 1."
    assert any(will in line for line in section(scene.text(7), "Public Event Log"))
    scene.play(4, "discussion", 7)
    assert will not in scene.text(7)
    town = scene.town()
    seat = town.seat("player-7")

    async def look() -> str:
        await seat.observe()
        return (await seat.act(Action("check_will", {"player": "Player 3"}))).message

    assert asyncio.run(look()) == WILL
    assert WILL in town.observation("player-7").to_text(), "results of the day are kept"
