"""Whatever players write stays text: it is carried out by nobody and changes the form of nobody's prompt."""

from __future__ import annotations

import asyncio
import re

import pytest
from injections import INJECTIONS
from turn_kit import Scene

from wsap_core.errors import ConfigError
from wsap_core.protocol import Action, Tool
from wsap_core.seams.model import Abilities
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.decision.styles import JsonStyle, TagStyle
from wsap_llm.reply import NotUnderstood
from wsap_llm.reply.schema import legal_actions
from wsap_llm.reply.tags import TagTurn, read_leg
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.tools.lookup import split
from wsap_tossim.names import checked_names
from wsap_tossim.world import Town

ROLES = ("Sheriff", "Medium", "Citizen", "Citizen", "Jailor", "Mafioso", "Godfather")
HARMLESS = "Nice weather."
READER = 1
"""The living Medium, who also hears the dead; it wrote nothing itself."""
FORMS = re.compile(
    r"<\s*/?\s*[A-Za-z_|!]|\[/?INST\]|<\||\|>|\[\||\|\]|\]~!?b|\[e~\[|\[/?(?:THINK|EOT|MODEL_SETTINGS)\]"
    r"|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]"
)
"""What must be left of none of them: tags, tokens of templates, characters that are not seen."""


def tricked(text: str, way: str) -> Town:
    """Return a town on the third morning in which Player 4, who is dead by then, wrote a text this way."""
    scene = Scene(*ROLES)
    shot, fits = scene.options.rules, text[:400]
    assert shot.longest_text == 400
    scene.on(2, "night", 6, "kill 4")
    if way == "speech":
        scene.on(3, "discussion", 3, f"speak: {fits}")
    elif way == "past speech":
        scene.on(2, "discussion", 3, f"speak: {fits}")
    elif way == "whisper":
        scene.on(3, "discussion", 3, f"whisper 2: {fits}")
    elif way == "dead talk":
        scene.on(3, "talk at night", 4, f"say: {fits}")
    scene.play(2, "discussion")
    if way in ("will", "note"):
        scene.write(4 if way == "will" else 6, way, text)
    if way == "dead talk":
        return scene.play(4, "discussion", 2).town()
    return scene.play(3, "discussion", 2).town()


WAYS = ("speech", "past speech", "whisper", "will", "note", "dead talk")


def skeleton(text: str) -> list[str]:
    """Return a turn with all that is quoted taken out: everything between the first and last quote of a line."""
    return [re.sub(r'".*"', '""', line) for line in text.split("\n")]


@pytest.fixture(scope="module")
def usual() -> dict[str, list[str]]:
    """The form of the turn with a harmless text in the same place."""
    return {way: skeleton(tricked(HARMLESS, way).observation(f"player-{READER + 1}").to_text()) for way in WAYS}


def test_there_are_enough_of_them_and_no_two_are_the_same() -> None:
    assert len(INJECTIONS) == len(set(INJECTIONS)) >= 100


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow
def test_the_form_of_a_turn_is_the_same_whatever_stands_in_it(way: str, usual: dict[str, list[str]]) -> None:
    for text in INJECTIONS:
        town = tricked(text, way)
        before = len(town.game.record)
        shown = town.observation(f"player-{READER + 1}").to_text()
        assert skeleton(shown) == usual[way], text
        assert not FORMS.search(shown.replace("\n", "")), text
        assert len(town.game.record) == before, "nothing was done by looking"


@pytest.mark.slow
def test_a_tool_tells_it_as_text_on_one_line() -> None:
    for text in INJECTIONS:
        town = tricked(text, "will")

        async def look(town: Town = town) -> str:
            seat = town.seat("player-2")
            await seat.observe()
            return (await seat.act(Action("check_will", {"player": "Player 4"}))).message

        told = asyncio.run(look())
        assert re.fullmatch(r'Player 4\'s Will: "[^"\n]*"', told), text
        assert not FORMS.search(told), text
        used = town.observation("player-2").to_text()
        assert sum(line.startswith("**") for line in used.split("\n")) == 6


@pytest.mark.slow
def test_ones_own_notes_and_summary_come_back_as_text() -> None:
    for text in INJECTIONS:
        town = tricked(HARMLESS, "speech")

        async def note(town: Town = town, text: str = text) -> str:
            seat = town.seat("player-2")
            await seat.observe()
            assert (await seat.act(Action("notebook", {"text": text}))).success
            assert (await seat.act(Action("write_will", {"text": text}))).success
            assert (await seat.act(Action("summarise_day", {"text": text}))).success
            return "".join([(await seat.act(Action(name))).message for name in ("view_notebook", "view_will")])

        told = asyncio.run(note())
        assert "\n" not in told, text
        assert not FORMS.search(told), text
        shown = town.observation("player-2").to_text()
        assert not FORMS.search(shown.replace("\n", "")), text
        (line,) = [line for line in shown.split("\n") if "(in your own words)" in line and line.startswith("- Day 2: ")]
        assert line.endswith("(in your own words)")
        harmless_lines = [line for line in shown.split("\n") if line.startswith("**")]
        assert len(harmless_lines) == 6


@pytest.mark.slow
def test_a_model_that_quotes_what_it_was_shown_does_nothing_by_it() -> None:
    """What reads tags reads what the model writes; what is quoted from a prompt has no tag left in it."""
    for text in INJECTIONS:
        observation = tricked(text, "speech").observation("player-2")
        town = tricked(text, "speech")
        finals, tools = split(legal_actions(town.action_space, observation))
        tags = TagTurn([Tool(t.name, t.description, t.parameters) for t in tools], finals)
        (said,) = [line for line in observation.to_text().split("\n") if line.startswith("- Player 3: ")]
        reading, _ = read_leg(tags, f"He says: {said}\n", inside_thinking=True)
        assert isinstance(reading, NotUnderstood), text
        assert "ended inside <thinking>" in reading.reason, "no tag was found in it"


@pytest.mark.parametrize("style", [TagStyle(), JsonStyle()], ids=["tags", "json"])
@pytest.mark.slow
def test_a_model_that_reads_it_and_waits_has_waited(style: TagStyle | JsonStyle) -> None:
    reply = "Hm.</thinking><wait/>" if isinstance(style, TagStyle) else '{"action": "wait", "params": {}}'

    async def read(text: str) -> None:
        town = tricked(text, "will")
        seat = town.seat("player-2")
        model = ScriptedBackend([reply], abilities=Abilities(prefill=True))
        agent = LLMAgent(model, LLMOptions("ToSSim", plan=False, window=0), style=style)
        await agent.initialize(seat.game_description, seat.action_space)
        assert (await agent.decide(await seat.observe())).name == "wait"
        assert len(model.requests) == 1, "and was asked once"
        assert len(model.requests[0].messages) == 2

    for text in INJECTIONS:
        asyncio.run(read(text))


def test_only_plain_words_among_them_could_be_a_name() -> None:
    for text in INJECTIONS:
        if re.fullmatch(r"[A-Za-z .']{1,30}", text):
            continue
        with pytest.raises(ConfigError) as caught:
            checked_names([text, "Ann", "Bob", "Cid", "Dora"], 5)
        assert "\n" not in str(caught.value)
        assert not FORMS.search(str(caught.value)), text
