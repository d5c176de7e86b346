"""The agent `llm` in a Russian world: everything that its model reads is in Russian."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wsap_core
import wsap_llm
from wsap_core.protocol import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    AgentMessage,
    Event,
    Goal,
    HistoryEntry,
    Observation,
    ParamDef,
    Tool,
)
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Request
from wsap_core.specs import AdapterSpec
from wsap_llm.agent import LLMAgent
from wsap_llm.decision.styles import JsonStyle, Style, TagStyle
from wsap_llm.memory.fifo import FifoMemory
from wsap_llm.options.llm import LLMOptions, llm_options
from wsap_llm.prompts import DEFAULTS, LANGUAGES, WORDS, Prompts
from wsap_llm.scripted import Answer, ScriptedBackend

SPACE = ActionSpace(
    [
        ActionDef("wait", "Молчать"),
        ActionDef("speak", "Сказать что-нибудь", [ParamDef("text", "что сказать")], ["есть кому"]),
        ActionDef("go", "Идти", [ParamDef("steps", "1-4")], category="movement"),
        ActionDef("ask", "Узнать время", category="tool"),
    ]
)
SEEN = Observation(
    {"здоровье": 7},
    {"яблоко": 2},
    recent_events=[Event("Скрипнула дверь.", step=2)],
    current_goals=[Goal("g", "Найти мельницу")],
    step=3,
    messages=[AgentMessage("Борис", "Кто здесь?")],
    language="ru",
)
NAMES = re.compile(
    r"""<[^<>\n]*>|"\w{1,12}":?|\{[^{}]*\}|\b(?:wait|speak|go|ask|text|steps|well|JSON|name|params|reasoning|id|see"""
    r"""|action|fly|hurt|blocked|word)\b"""
)
"""Names of actions, tools and members, which are the same in every language."""


class Well:
    """An agent's own tool."""

    definition = Tool("well", "Колодец помнит", [ParamDef("word", "слово")])

    def run(self, parameters: Mapping[str, Any]) -> str:
        return "В колодце темно."


def english_in(request: Request) -> list[str]:
    """Return the English words in the messages to a model, except its own replies."""
    told = "\n".join(m.text() for m in request.messages if m.role != "assistant")
    return re.findall(r"[A-Za-z]{2,}", NAMES.sub(" ", NAMES.sub(" ", told)))


def agent_with(backend: ScriptedBackend, style: Style, **more: Any) -> LLMAgent:
    options = LLMOptions("Деревня", "Твоя цель — дожить до утра.", fallback="wait", **more)
    prompts = Prompts(language="ru")
    memory = FifoMemory(language="ru")
    return LLMAgent(backend, options, style=style, prompts=prompts, memory=memory, tools=[Well()])


async def played(agent: LLMAgent, turns: int) -> None:
    await agent.initialize("Деревня у старой мельницы.", SPACE)
    await agent.plan([Goal("g", "Найти мельницу")])
    for step in range(turns):
        action = await agent.decide(SEEN if step % 2 == 0 else Observation(step=3 + step, language="ru"))
        said = "Полночь." if action.name == "ask" else "Никто не слышит."
        result = ActionResult(action.name == "ask", said, 0.5, ["первый"], step == turns - 1, SEEN)
        await agent.reflect(result)


TOOL_JSON = '{"tool": "well", "params": {"word": "вода"}}'
JSON = [
    "дойти до мельницы",
    TOOL_JSON,
    "Полетели!",
    '{"action": "speak", "params": {"text": "Это я"}, "reasoning": "надо"}',
    '{"action": "ask", "params": {}, "reasoning": "пора"}',
    '{"action": "go", "params": {"steps": 9}, "times": 3, "reasoning": "иду"}',
    '{"action": "go", "params": {"steps": 2}, "times": 3, "reasoning": "иду"}',
    '{"action": "fly", "params": {}, "reasoning": "лечу"}',
    '{"action": "wait", "params": {}, "reasoning": "жду"}',
]
TAGS = [
    "дойти до мельницы",
    "<thinking>Спрошу колодец. <well>вода</well>",
    "Ясно.</thinking><speak>Это я</speak>",
    "<thinking>Пора.",
    "<thinking>Пора.</thinking><wait/>",
    "<thinking>Который час? <ask/>",
    "Ясно.</thinking><go>2</go>",
]


@pytest.mark.parametrize(
    ("style", "answers"), [(JsonStyle(steps=4), JSON), (TagStyle(), TAGS), (TagStyle(steps=3), TAGS)]
)
@pytest.mark.parametrize("resume", [False, True])
def test_nothing_in_english_reaches_the_model(style: Style, answers: list[Answer], resume: bool) -> None:
    backend = ScriptedBackend([*answers, *["ничего"] * 30], abilities=Abilities(resume=resume))
    agent = agent_with(backend, style, plan=True, reflect_every=4)
    asyncio.run(played(agent, 8))
    purposes = {request.purpose for request in backend.requests}
    assert {"plan", "decide", "tool", "re-ask", "reflect"} <= purposes
    for request in backend.requests:
        assert english_in(request) == [], request.messages[-1].text()
        assert "\\u0" not in "".join(message.text() for message in request.messages)


def test_the_prompts_are_those_of_the_language_of_the_game() -> None:
    backend = ScriptedBackend(['{"action": "wait", "params": {}, "reasoning": "жду"}'])
    agent = LLMAgent(backend, LLMOptions("Деревня", plan=False), prompts=Prompts(language="ru"))

    async def turn() -> None:
        await agent.initialize("Деревня у мельницы.", SPACE)
        await agent.decide(SEEN)

    asyncio.run(turn())
    system, user = (m.text() for m in backend.requests[0].messages)
    assert system.startswith("Ты — агент в игре «Деревня».\n\nДеревня у мельницы.\n\nДоступные действия:\n")
    assert "speak(text: что сказать): Сказать что-нибудь [нужно: есть кому]" in system
    assert user.startswith("ЧТО ПРОИЗОШЛО:\n- Скрипнула дверь.\n\nШаг 3\n\nСОСТОЯНИЕ:\nздоровье: 7")
    assert "- Борис (всем): <data-" in user
    assert "написан другими" in user


def test_options_are_in_the_language_of_the_game_unless_it_says_more() -> None:
    russian_game = AdapterSpec("tale", "", "tale:Tale", language="ru")
    assert llm_options(Context(game=russian_game)).objective == "Твоя цель — выжить и выполнить задачи."
    assert llm_options(Context(game=AdapterSpec("tale", "", "tale:Tale"))).objective == LLMOptions.objective


def test_a_memory_says_in_russian_what_was_lived_in_russian() -> None:
    memory = FifoMemory(language="ru")
    result = ActionResult(True, "Дверь открыта.", 1.0, ["взломщик"], True, SEEN)
    before = replace(SEEN, step=2, recent_events=(), messages=())
    memory.remember(HistoryEntry(before, Action("open", {"what": "дверь"}, "пора"), result, world="Деревня", step=3))
    (found,) = memory.recall("дверь", budget=500)
    words = Prompts(language="ru").words
    assert words.say(found.text) == (
        "(Деревня, шаг 3) Действие: open(what=дверь) (мысль: пора); получилось: Дверь открыта. Достигнуто: взломщик. "
        "Награда: +1. Скрипнула дверь. Борис: «Кто здесь?». На этом всё кончилось."
    )


def test_a_summary_is_asked_for_in_russian() -> None:
    backend = ScriptedBackend(["Я открыл дверь."])
    memory = FifoMemory(1, backend=backend, language="ru")
    for step in (1, 2):
        memory.remember(HistoryEntry(SEEN, Action("go"), ActionResult(True), world="Деревня", step=step))
    compacting = memory.compact()
    assert compacting is not None
    asyncio.run(compacting)
    assert english_in(backend.requests[0]) == []
    assert (
        backend.requests[0].messages[1].text().startswith("ПАМЯТЬ ДО СИХ ПОР:\n- (пока ничего)\n\nПРОЖИТО С ТЕХ ПОР:")
    )


# --- the tables -----------------------------------------------------------------------------


def test_both_languages_have_the_same_templates_with_the_same_values() -> None:
    from jinja2 import Environment, meta

    def values(text: str) -> set[str]:
        return meta.find_undeclared_variables(Environment().parse(text))  # prompts are not HTML

    assert list(LANGUAGES["ru"]) == list(DEFAULTS)
    for name, text in DEFAULTS.items():
        assert values(LANGUAGES["ru"][name]) == values(text), name


def test_a_persons_templates_take_the_place_of_those_of_any_language() -> None:
    prompts = Prompts({"tag_question": "Ну?"}, "ru")
    assert prompts.render("tag_question") == "Ну?"
    assert prompts.render("json_answer", steps=1) == "Ответь действием в JSON."
    assert Prompts(language="tlh").texts == DEFAULTS
    assert len({prompts.version, Prompts(language="ru").version, Prompts().version}) == 3


SAYING = {"say", "NotUnderstood", "Difference", "_refuse", "refuse"}
"""Functions and methods that take a text to translate."""


def said_in(package: Any) -> Iterator[tuple[str, str]]:
    """Yield the places with translated texts in the code, and an example of each text, with 7 in each field."""
    for path in sorted(Path(package.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
            if isinstance(node, ast.Call) and name in SAYING:
                for argument in node.args:
                    for text in examples(argument):
                        if re.search(r"[a-z]{2}", text) and not (name == "Difference" and " " not in text):
                            yield f"{path.name}:{node.lineno}", text


def examples(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = [
            str(part.value) if isinstance(part, ast.Constant) else "'7'" if getattr(part, "conversion", 0) > 0 else "7"
            for part in node.values
        ]
        yield "".join(parts)
    elif isinstance(node, ast.IfExp):
        yield from examples(node.body)
        yield from examples(node.orelse)


@pytest.mark.parametrize("package", [wsap_core, wsap_llm], ids=lambda package: str(package.__name__))
def test_whatever_is_said_in_code_is_in_the_table(package: Any) -> None:
    missing = [(place, text) for place, text in said_in(package) if WORDS["ru"].say(text) == text]
    assert not missing


def test_every_sentence_of_the_table_is_made_of_words_of_the_code() -> None:
    home = Path(wsap_llm.__file__).parent
    files = home.rglob("*.py")
    table = json.loads((home / "russian.json").read_text(encoding="utf-8"))
    code = set(re.findall(r"[A-Za-z']+", "\n".join(path.read_text(encoding="utf-8") for path in files)))
    for text in [text for part in table.values() for text in part]:
        literals = " ".join(re.split(r"\{\w+\}", text))
        assert code.issuperset(re.findall(r"[A-Za-z']{3,}", literals)), text
