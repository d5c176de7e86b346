"""The storyteller: sound replies, a story in which something is at stake, and no state of its own."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from zlib import crc32

import pytest
from sandbox_kit import Played, mill, played

from wsap_core.protocol.values import validate_value
from wsap_core.seams.context import Context
from wsap_core.seams.model import Message, Request
from wsap_core.seams.model_errors import BadRequestError
from wsap_sandbox.phrases.grammar import Form, Grammar, fill, grammar_of, sentence
from wsap_sandbox.storyteller.backend import Storyteller, create
from wsap_sandbox.storyteller.lore import ARC, declined
from wsap_sandbox.templates.loader import read_template, world_of
from wsap_sandbox.tick.facts import Facts, facts_data, intent_facts
from wsap_sandbox.tick.replies import schema_of

SENTENCE = re.compile(r"(?<=[.!?…])\s+")
WORLDS = [(name, code) for name in ("village", "lighthouse") for code in ("en", "ru")]
LIMIT = 300


def told(key: str, facts: Facts) -> object:
    reply = Storyteller().reply(facts_data(facts), crc32(key.encode()))
    assert validate_value(reply, schema_of(facts, 2 * LIMIT)) is None
    return reply


@cache
def story(name: str, code: str, ticks: int = ARC) -> Played:
    return played(world_of(read_template(name, code), 1), told, ticks)


def repeated(done: Played) -> float:
    """The share of sentences of the whole story that were there before, word for word."""
    sentences = [one for part in done.stories for one in SENTENCE.split(part.text)]
    return 1 - len(set(sentences)) / len(sentences)


@pytest.mark.parametrize(("name", "code"), WORLDS)
@pytest.mark.slow
def test_an_arc_is_told_without_a_degraded_result(name: str, code: str) -> None:
    done = story(name, code)
    assert sum(len(record.degraded) for record in done.records) <= 1
    assert all(one.degraded == () for one in done.stories)
    assert all(not re.search(r"[{}<>]|\bNone\b", one.text) for one in done.stories)


@pytest.mark.parametrize(("name", "code"), WORLDS)
def test_what_is_at_stake_rises_and_resolves(name: str, code: str) -> None:
    stake = read_template(name, code).stakes[0]
    done = story(name, code)
    text = " ".join(one.text for one in done.stories).casefold()
    assert stake.title.casefold() in text
    assert any(worse.casefold() in text for worse in stake.worse)
    assert any(end.casefold() in text for end in (stake.good, stake.bad))
    conditions = [dict(record.conditions).get(stake.object) for record in done.records]
    assert len(set(filter(None, conditions))) >= 2
    assert done.world.object(stake.object).condition == read_template(name, code).objects[0].stages[0]


@pytest.mark.parametrize(("name", "code"), WORLDS)
def test_intentions_come_out_in_every_way(name: str, code: str) -> None:
    events = [event for record in story(name, code).records for event in record.events]
    kinds = Counter((event.kind, event.outcome) for event in events)
    assert all(kinds["act", outcome] >= 3 for outcome in ("success", "partial", "failure"))
    assert kinds["move", "success"] >= 3
    assert kinds["happening", "success"] >= 3
    assert any(event.triggers for event in events)


def test_goals_go_on_with_what_happened() -> None:
    done = story("village", "en")
    goals = {(one.id, one.external_intent) for record in done.records for one in record.characters}
    changed = Counter(one for one, _ in goals)
    assert sum(count > 1 for count in changed.values()) >= 4


def test_an_empty_place_changes_too() -> None:
    done = story("village", "en")
    told_there = [one.text for one in done.stories if one.place == "square"]
    acted_there = [any(one.actor for one in record.events if one.place == "square") for record in done.records]
    empty = [text for text, acted in zip(told_there, acted_there, strict=True) if not acted]
    assert len(empty) >= 2
    assert len(set(empty)) == len(empty)
    assert "out" in {dict(record.conditions).get("fire") for record in done.records}


@pytest.mark.parametrize(("name", "code"), WORLDS)
def test_the_weather_is_felt_outdoors_and_only_heard_under_a_roof(name: str, code: str) -> None:
    done, rules = story(name, code), grammar_of(code).rules
    inside = {place.id for place in read_template(name, code).places if place.indoors}
    assert len(inside) >= 2
    under_a_roof = {text for rule in rules if "_in_" in f"{rule}_" for text in rules[rule]}
    felt = {text for rule in rules if rule[:3] == "sky" or rule == "weather_bad" for text in rules[rule]} - under_a_roof
    said: dict[bool, str] = {True: "", False: ""}
    for record in done.records:
        for change in record.places:
            said[change.id in inside] += f" {change.moment.casefold()}"
        for event in record.events:
            said[event.place in inside] += f" {event.text.casefold()}"
    for told in done.stories:
        said[told.place in inside] += f" {told.text.casefold()}"
    assert not [text for text in felt if text in said[True]]
    assert sum(text in said[False] for text in felt) > 5
    assert sum(text in said[True] for text in under_a_roof) > 5


def test_a_memory_drifts_and_keeps_to_four_sentences() -> None:
    done = story("village", "en")
    summaries = [c.summary for r in done.records for c in r.characters if c.summary]
    assert summaries
    assert all(len(SENTENCE.split(one)) <= 4 for one in summaries)
    first = next(c.summary for r in done.records for c in r.characters if c.id == "anna" and c.summary)
    assert done.world.character("anna").memory.summary != first
    assert SENTENCE.split(first)[0] not in done.world.character("anna").memory.summary


@pytest.mark.parametrize(("name", "code"), WORLDS)
def test_few_sentences_come_twice_in_an_arc(name: str, code: str) -> None:
    assert repeated(story(name, code)) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code", "ticks"), [("village", "en", 1000), ("lighthouse", "ru", 400)])
def test_at_most_one_sentence_in_twenty_comes_again_in_a_long_story(name: str, code: str, ticks: int) -> None:
    assert repeated(story(name, code, ticks)) <= 0.05


def test_the_same_facts_and_seed_give_the_same_reply() -> None:
    world = world_of(read_template("village", "ru"))
    facts = facts_data(intent_facts(world, world.characters[0]))
    replies = [[Storyteller().reply(facts, seed)["intention"] for seed in range(12)] for _ in range(2)]
    assert replies[0] == replies[1]
    assert len(set(replies[0])) > 1


@pytest.mark.slow
def test_a_world_that_the_storyteller_never_heard_of_is_told() -> None:
    assert played(replace(mill(), premise=""), told).stories
    done = played(mill(), told, 12)
    assert all(record.degraded == () for record in done.records)
    assert repeated(done) <= 0.2
    assert len({one.place for record in done.records for one in record.characters if one.id == "vera"}) > 1


def test_a_stranger_in_a_russian_world_is_declined_by_its_ending() -> None:
    assert declined("Олег", "ru")[1:] == ("Олега", "Олегу", "Олега", "Олегом", "Олеге")
    assert declined("Ольга", "ru")[1:] == ("Ольги", "Ольге", "Ольгу", "Ольгой", "Ольге")
    assert declined("Мария", "ru")[1:] == ("Марии", "Марии", "Марию", "Марией", "Марии")
    assert declined("Игорь", "ru")[1:] == ("Игоря", "Игорю", "Игоря", "Игорем", "Игоре")
    assert declined("John", "ru") == ("John",)
    world = world_of(read_template("village", "ru"), 2)
    guest = replace(world.character("matt"), id="oleg", name="Олег", place="square", inventory=())
    done = played(replace(world, characters=(*world.characters, guest)), told, 6)
    assert all(record.degraded == () for record in done.records)


def test_a_world_of_ones_own_is_told_in_its_own_words(tmp_path: Path) -> None:
    text = (resources.files("wsap_sandbox") / "templates" / "village.en.toml").read_text("utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(text.replace("Alderford", "Elmford").replace("Anna", "Hanna"), "utf-8")
    world = world_of(read_template(str(file)))
    hanna = facts_data(intent_facts(world, world.characters[0]))
    teller = create(Context(config={"model": str(file)}))
    said = {str(teller.reply(hanna, seed)["intention"]) for seed in range(20)}
    assert any("finish the new bolt" in one for one in said)
    unknown = {str(Storyteller().reply(hanna, seed)["intention"]) for seed in range(20)}
    assert not any("finish the new bolt" in one for one in unknown)
    file.unlink()
    assert create(Context(config={"model": str(file)})).reply(hanna, 1)["intention"]


def test_words_follow_case_and_gender() -> None:
    slots: Mapping[str, Form | str] = {"a": Form(("Вера", "Веры", "Вере", "Веру", "Верой", "Вере"), "f"), "do": "уйти"}
    template = "{a.d} пора {do}, и {a} {a:ушёл|ушла|ушло|ушли} без {a.g}"
    assert fill(template, slots) == "Вере пора уйти, и Вера ушла без Веры"
    assert sentence("  the end , and so ") == "The end, and so."


def test_consecutive_numbers_give_sentences_that_differ() -> None:
    grammar = Grammar({"s": ["<x> and <y>", "<y>, then <x>"], "x": ["a", "b", "c"], "y": ["d", "e", "f", "g"]})
    assert len({grammar.text("s", number, {}) for number in range(24)}) == 24


@pytest.mark.parametrize("code", ["en", "ru"])
def test_every_rule_that_is_referred_to_exists(code: str) -> None:
    rules = grammar_of(code).rules
    given = {"way_first", "way_mid", "way_last", "won", "detail", "detail2", "tod", "sky", "alone", "line", "quoted"}
    used = {name for options in rules.values() for option in options for name in re.findall(r"<(\w+)>", option)}
    assert {name for name in used if name not in rules and name.lower() not in rules} - given <= {"Way_first"}
    assert set(rules) == set(grammar_of("en").rules)


def test_a_request_without_facts_is_refused() -> None:
    asked = create(Context(config={"model": "default"})).complete(Request([Message("user", "Hello")]))
    with pytest.raises(BadRequestError, match="choose a language model"):
        asyncio.run(asked)
