"""The storyteller's Russian, over thousands of its sentences."""

from __future__ import annotations

import asyncio
import re
import tomllib
from importlib import resources

import pytest

from wsap_core.seams.context import Context
from wsap_sandbox.languages import words_of
from wsap_sandbox.templates.loader import read_template, template_names
from wsap_sandbox.world import create

PHASE = r"(?:нач(?:ал|ала|ало|али|нёт|ну|нут)|стал[аио]?|принял(?:ся|ась|ось|ись)|продолж\w+|переста\w+|бросил[аио]?)"
"""Verbs for the beginning or end of an action, which take an imperfective infinitive only."""
AFTER_PHASE = re.compile(rf"\b{PHASE}(?: было)? (?!чуть\b)(\w+(?:ть|ти|чь)(?:ся)?)\b", re.IGNORECASE)
IMPERFECTIVE = {
    *("бить", "булькать", "верить", "жаловаться", "запаздывать", "идти", "отзываться", "слушаться", "чадить"),
    *("быть", "думать", "капать", "ждать", "звать", "отвечать", "спрашивать", "таять"),
}
FAULTS = {
    "a restriction twice": re.compile(r"\bтолько\b[^.;:!?]*\bтолько\b"),
    "a contrast twice": re.compile(r"сразу, но [^.;:]*, (?:но|да) "),
    "a verb without what it is said of": re.compile(r"[,:;] (?:и )?(?:пригодится|до поры)\b"),
    "a word broken at the end of a line": re.compile(r"\w- \w"),
    "a word twice": re.compile(r"\b(\w{4,}) \1\b"),
    "signs next to each other": re.compile(r"[,;:] ?[,;:]| [,.;:]"),
}


def sentences(template: str, ticks: int) -> list[str]:
    """Return what ticks of a world tell: events, stories, memories, states, and what passes in places."""

    async def played() -> list[str]:
        texts: list[str] = []
        game = create(Context(config={"template": template, "language": "ru"}, seed=3))
        game._engine._tell = lambda story: texts.append(story.text)
        for _ in range(ticks):
            await game.advance()
            assert game.record is not None
            texts.extend(event.text for event in game.record.events)
            texts.extend(place.moment for place in game.record.places)
            for one in game.record.characters:
                texts += [one.cell.text, one.internal_state, one.intention, one.summary or ""]
        return texts

    return [part for text in asyncio.run(played()) for part in re.split(r"(?<=[.!?…])\s+", text) if part]


@pytest.mark.slow
def test_thousands_of_sentences_are_russian() -> None:
    told = [sentence for name in template_names() for sentence in sentences(name, 50)]
    assert len(told) > 7000
    followed = {found[1].lower(): sentence for sentence in told for found in AFTER_PHASE.finditer(sentence)}
    assert {word: sentence for word, sentence in followed.items() if word not in IMPERFECTIVE} == {}
    for what, pattern in FAULTS.items():
        assert [sentence for sentence in told if pattern.search(sentence)] == [], what


def test_no_phrase_puts_a_deed_behind_a_verb_of_phase() -> None:
    # What is done is perfective: "починить засов", not "чинить".
    text = resources.files("wsap_sandbox").joinpath("phrases/ru.toml").read_text("utf-8")
    phrases = [one for value in tomllib.loads(text).values() for one in (value if isinstance(value, list) else [value])]
    forms = [re.sub(r"\{\w+:(\w+)[^}]*\}", r"\1", phrase) for phrase in phrases]
    assert any("хотел было {do}" in form for form in forms)
    assert [form for form in forms if re.search(rf"\b{PHASE}(?: было)? \{{do\}}", form, re.IGNORECASE)] == []
    deeds = [aim.do for name in template_names() for one in read_template(name, "ru").characters for aim in one.aims]
    assert not {deed.split()[0] for deed in deeds} & IMPERFECTIVE


@pytest.mark.parametrize("language", ["en", "ru"])
def test_no_word_of_a_prompt_is_broken_at_the_end_of_a_line(language: str) -> None:
    words = words_of(language)
    texts = [*words.full.values(), *words.brief.values(), *words.problems.values(), words.data, words.reply]
    assert [text for text in texts if re.search(r"\w- \w", text)] == []
