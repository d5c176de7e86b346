"""Whatever players write stays text elsewhere, too: in the terminal, on pages, in exports, in what models reply."""

from __future__ import annotations

import asyncio
import html.parser
import io
import json
import re

import pytest
from injections import INJECTIONS
from test_injections import FORMS, HARMLESS, skeleton, tricked

from wsap_core.seams.model import Abilities
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.decision.styles import JsonStyle, TagStyle
from wsap_llm.scripted import ScriptedBackend
from wsap_tossim.export.games import Wanted
from wsap_tossim.export.sources import source_of_record
from wsap_tossim.export.writing import write_chat
from wsap_tossim.replay import Record
from wsap_tossim.world import Town

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""What a terminal is told by the view itself."""
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


@pytest.mark.slow
def test_nothing_reaches_a_terminal_but_text() -> None:
    blocks = pytest.importorskip("wsap_nexus.terminal.blocks")
    from rich.console import Console

    for text in INJECTIONS:
        town = tricked(text, "speech")
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=100, height=50, color_system="truecolor")
        for view in (town.render(), town.picture("player-2")):
            for block in view.blocks:
                console.print(blocks.draw_block(block))
        shown = out.getvalue()
        assert "Player 3" in shown
        assert not UNSEEN.search(COLOURS.sub("", shown)), text


class Tags(html.parser.HTMLParser):
    """The elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))


@pytest.mark.slow
def test_no_words_make_elements_of_a_page() -> None:
    usual = Tags(Record(tricked(HARMLESS, "will").game, NAMES).page()).tags
    for text in INJECTIONS:
        assert Tags(Record(tricked(text, "will").game, NAMES).page()).tags == usual, text


NAMES = tuple(f"Player {n + 1}" for n in range(7))


WRITER = 2
"""Who speaks, from 0: its own turns are left out where they would not be read back as what it did."""


def exported(town: Town, dialect: str) -> list[list[tuple[str, str]]]:
    """Return the conversations of the others that are exported: who, and what."""
    file = io.StringIO()
    write_chat([source_of_record(Record(town.game, NAMES))], Wanted(dialect=dialect), file)  # type: ignore[arg-type]
    lines = [json.loads(line) for line in file.getvalue().split("\n") if line]
    return [[(m["role"], m["content"]) for m in line["messages"]] for line in lines if line["player"] != WRITER]


@pytest.mark.parametrize("dialect", ["tags", "json"])
@pytest.mark.slow
def test_an_exported_conversation_has_the_same_form_whatever_is_said(dialect: str) -> None:
    def forms(found: list[list[tuple[str, str]]]) -> list[list[tuple[str, list[str]]]]:
        return [[(role, skeleton(content)) for role, content in messages] for messages in found]

    usual = forms(exported(tricked(HARMLESS, "speech"), dialect))
    for text in INJECTIONS[::6]:
        found = exported(tricked(text, "speech"), dialect)
        assert forms(found) == usual, text
        shown = [content for messages in found for role, content in messages if role == "user"]
        assert not any(FORMS.search(content.replace("\n", "")) for content in shown), text


@pytest.mark.parametrize("style", [TagStyle(), JsonStyle()], ids=["tags", "json"])
def test_a_whole_prompt_has_the_same_form_with_a_tool_used_in_it(style: TagStyle | JsonStyle) -> None:
    """The will is read by the tool in mid-turn: what comes back is in the second request, in the same place."""
    if isinstance(style, TagStyle):
        replies = ["Hm.<check_will>Player 4</check_will>", "So.</thinking><wait/>"]
    else:
        replies = [json.dumps({"action": name, "params": given}) for name, given in
                   (("check_will", {"player": "Player 4"}), ("wait", {}))]  # fmt: skip

    async def form(text: str) -> list[list[tuple[str, str]]]:
        town = tricked(text, "will")
        seat = town.seat("player-2")
        model = ScriptedBackend(list(replies), abilities=Abilities(prefill=True))
        agent = LLMAgent(model, LLMOptions("ToSSim", plan=False, window=0, constrain=False), style=style)
        await agent.initialize(seat.game_description, seat.action_space)
        action = await agent.decide(await seat.observe())
        assert action.name == "check_will"
        await agent.reflect(await seat.act(action))
        assert (await agent.decide(await seat.observe())).name == "wait"
        assert len(model.requests) == 2
        return [
            [(m.role, re.sub(r'".*"', '""', m.text())) for m in request.messages]
            + [("prefill", re.sub(r'".*"', '""', request.prefill))]
            for request in model.requests
        ]

    usual = asyncio.run(form(HARMLESS))
    for text in INJECTIONS[::4]:
        assert asyncio.run(form(text)) == usual, text


@pytest.mark.slow
def test_a_reply_in_json_that_quotes_a_speech_does_only_what_it_says_itself() -> None:
    async def replied(text: str) -> str:
        town = tricked(text, "speech")
        seat = town.seat("player-2")
        seen = await seat.observe()
        (said,) = [line for line in seen.to_text().split("\n") if line.startswith("- Player 3: ")]
        reply = f"He says: {said}\n" + json.dumps({"action": "wait", "params": {}, "reasoning": said})
        agent = LLMAgent(
            ScriptedBackend([reply]), LLMOptions("ToSSim", plan=False, window=0, constrain=False), style=JsonStyle()
        )
        await agent.initialize(seat.game_description, seat.action_space)
        return (await agent.decide(seen)).name

    for text in INJECTIONS:
        assert asyncio.run(replied(text)) == "wait", text
