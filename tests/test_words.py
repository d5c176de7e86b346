"""Worlds in other languages: what the kernel says to whoever plays in them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wsap_core
from wsap_core import (
    Action,
    ActionDef,
    ActionSpace,
    AdapterSpec,
    AgentMessage,
    Avatar,
    Codec,
    Context,
    Effect,
    EmbodiedObservation,
    Entity,
    Event,
    Goal,
    Observation,
    ParamDef,
    Terrain,
    World,
    system_message,
    user_message,
)
from wsap_core.builtin.echo import EchoWorld
from wsap_core.protocol.actions import ActionResult
from wsap_core.protocol.wire import dumps
from wsap_core.protocol.words import ENGLISH, RUSSIAN, WORDS, Words, words_of
from wsap_core.worlds import Mailbox

ECHO = AdapterSpec("echo", "Echo.", EchoWorld, abilities=("seed", "snapshot", "render"), language="ru")
NIGHT = Observation(
    {"health": 4, "warm": False},
    {"wood": 3},
    nearby_entities=[Entity("tree"), Entity("wolf", None, 2, "here")],
    nearby_terrain=[Terrain("water", "west", False, 3)],
    active_effects=[Effect("poisoned", "loses 1 health each step", 5)],
    current_goals=[Goal("wood", "Collect 10 wood")],
    recent_events=[Event("You drank from the river")],
    step=412,
    time_of_day="night",
    messages=[AgentMessage("bo", "Meet me at the well", "direct", "you")],
)
DIVER = EmbodiedObservation(step=3, avatar=Avatar("a-1", "sea", "ida", name="Ida"), facing="north")
CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)


def fields_of(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_sentence_is_made_of_words_of_the_code_and_keeps_its_fields() -> None:
    folder = Path(wsap_core.__file__).parent
    files = [path for path in folder.rglob("*.py") if path.name != "words.py"]
    code = set(re.findall(r"[A-Za-z']+", "\n".join(path.read_text(encoding="utf-8") for path in files)))
    for text, wording in RUSSIAN.texts.items():
        assert fields_of(wording) <= fields_of(text)
        assert CYRILLIC.search(wording)
        literals = [before for before, *_ in Formatter().parse(text)]
        assert "" not in literals[1:], f"two fields that nothing separates can't be told apart: {text}"
        assert code.issuperset(re.findall(r"[A-Za-z']{3,}", " ".join(literals))), text


def test_english_is_what_the_code_says() -> None:
    assert ENGLISH.say("You have acted already.") == "You have acted already."
    assert words_of("tlh") is ENGLISH
    assert words_of("ru") is RUSSIAN


@pytest.mark.parametrize(
    ("said", "wording"),
    [
        ("You have acted already.", "Твой ход уже сделан."),
        ("There is no action 'fly' here. Did you mean fry?", "Здесь нет действия fly. Может быть, fry?"),
        (
            "There is no action 'fly' here. Did you mean fry or flee?",
            "Здесь нет действия fly. Может быть, fry или flee?",
        ),
        ("move needs 'steps' (a whole number from 1 to 4).", "Для move нужен параметр steps (целое число от 1 до 4)."),
        (
            "move: 'steps' is not right: value must be a whole number from 1 to 4, not 9. (expected a whole number).",
            "move: с параметром steps что-то не так: нужно целое число от 1 до 4, а не 9. Ожидается: целое число.",
        ),
        ("Сказано на языке игры.", "Сказано на языке игры."),
        ("", ""),
    ],
)
def test_a_sentence_is_found_with_what_is_in_it(said: str, wording: str) -> None:
    assert RUSSIAN.say(said) == wording


@given(st.sampled_from(sorted(RUSSIAN.texts)), st.data())
def test_any_sentence_is_found_whatever_is_in_it(text: str, data: st.DataObject) -> None:
    names = fields_of(text)
    words = Words("xx", {text: "|".join(f"{{{name}}}" for name in sorted(names)) or "x"})
    values = {name: data.draw(st.text("абв", min_size=1)) for name in names}
    assert words.say(text.format(**values)) == ("|".join(values[name] for name in sorted(names)) or "x")


@given(st.text(max_size=300))
def test_any_text_can_be_asked_for(text: str) -> None:
    assert isinstance(RUSSIAN.say(text), str)


def test_observations_and_prompts_in_russian() -> None:
    text = user_message(replace(NIGHT, language="ru"))
    for title in ("Шаг 412", "ВРЕМЯ:", "СОСТОЯНИЕ:", "ПОБЛИЗОСТИ:", "ЧТО ПРОИЗОШЛО:", "СООБЩЕНИЯ:"):
        assert title in text
    for line in (
        "warm: нет",
        "(осталось шагов: 5)",
        "(не пройти)",
        "bo (лично): Meet",
        "Что ты делаешь? Ответь в JSON",
    ):
        assert line in text
    assert "=== АВАТАР: " in replace(DIVER, language="ru").to_text()
    space = ActionSpace([ActionDef("dig", "Копать", preconditions=["лопата в руках"])])
    system = system_message("Остров", "Необитаемый остров.", space, "ru")
    assert system.startswith("Ты — агент в игре «Остров».")
    assert "- dig: Копать [нужно: лопата в руках]" in system


def test_the_language_travels_and_is_left_out_where_it_is_english() -> None:
    night = replace(NIGHT, language="ru")
    assert Codec().loads(Observation, dumps(night)) == night
    assert '"language":"ru"' in dumps(night)
    assert "language" not in dumps(NIGHT)
    assert Codec().loads(Observation, dumps(NIGHT)) == NIGHT
    assert dumps(ActionResult(True, observation=night)).count('"language"') == 1
    newer = replace(night, extras={"$type": "Newer", "wind": 3})
    assert '"language":"ru"' in dumps(newer)
    assert '"wind":3' in dumps(newer)


def test_a_seat_speaks_the_language_of_its_game() -> None:
    async def play() -> list[str]:
        world = World.create(ECHO, Context.create(1))
        await world.reset(1)
        seat = world.open_seat("anna")
        seen = await seat.observe()
        done = [await seat.act(Action("speek", {"text": "hi"})), await seat.act(Action("speak", {}))]
        done.append(await seat.act(Action("inspect_self")))
        assert {seen.language, *(result.observation.language for result in done)} == {"ru"}
        return [result.message for result in done]

    unknown, missing, self_told = asyncio.run(play())
    assert unknown == "Здесь нет действия speek. Может быть, speak?"
    assert missing.startswith("Для speak нужен параметр text (")
    assert self_told.startswith("Ты — ")


class Talkers(EchoWorld):
    """Two who can talk, and have bodies."""

    def __init__(self) -> None:
        super().__init__(Context())
        self.mailbox = Mailbox(["anna", "boris"])


def test_actions_and_refusals_that_every_world_has_are_in_its_language() -> None:
    async def play() -> tuple[ActionSpace, ActionResult]:
        spec = AdapterSpec("talkers", "", Talkers, abilities=("messages",), language="ru")
        world = World.create(spec, Context())
        await world.reset()
        seat = world.open_seat("anna")
        await seat.observe()
        return seat.action_space, await seat.act(Action("tell", {"to": "clara", "text": "привет"}))

    space, result = asyncio.run(play())
    tell: Any = space.find("tell")
    assert tell.description == "Сказать одному так, чтобы больше никто не слышал"
    assert tell.parameters[0].choices() == ("boris",)
    assert tell.parameters[1] == ParamDef("text", "что сказать")
    assert result.message.startswith("tell: с параметром to что-то не так: ")


def test_each_language_is_known_by_its_code() -> None:
    assert {code: words.language for code, words in WORDS.items()} == {"en": "en", "ru": "ru"}
