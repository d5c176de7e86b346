"""Prompts: what is in them, how long they are, and that both languages say everything."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from sandbox_kit import mill

from wsap_core.errors import ConfigError, SnapshotError
from wsap_core.seams.memory import estimate_tokens
from wsap_llm.kit import estimate_request
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import DEGRADATIONS, Cell, Memory, World, dump, load
from wsap_sandbox.templates.loader import read_template, world_of
from wsap_sandbox.tick import Settings
from wsap_sandbox.tick.facts import Facts, IntentFacts, SceneFacts, intent_facts, memory_facts, scene_facts
from wsap_sandbox.tick.prompts import fitting, prompt_of, request_for

CELL = Cell(
    1,
    "I tried to shore up the gate with the last of the oak beams.",
    "It half worked: a rope was missing, and strength ran out halfway.",
    "One pair of hands is not enough for this, and nobody will say so.",
)


def remembering(world: World) -> World:
    """Everybody has a full memory."""
    memory = Memory((CELL,) * world.cells, " ".join(CELL.text for _ in range(3)))
    return replace(world, characters=tuple(replace(one, memory=memory) for one in world.characters))


def all_facts(world: World) -> list[Facts]:
    """The largest facts of each phase, with three people in one place."""
    place = world.places[0]
    people = tuple(
        replace(one, place=place.id if at < 3 else world.places[1].id) for at, one in enumerate(world.characters)
    )
    world = replace(world, characters=people)
    intentions = {one.id: f"{CELL.tried} {CELL.came_of_it}" for one in world.present(place.id)}
    one = world.characters[0]
    return [
        intent_facts(world, one),
        scene_facts(world, place, intentions),
        memory_facts(world, one, one.memory.cells[:1]),
    ]


@pytest.mark.parametrize("name", ["village", "lighthouse"])
def test_compact_prompts_fit_into_nine_hundred_tokens(name: str) -> None:
    for facts in all_facts(remembering(world_of(read_template(name, "en")))):
        prompt = prompt_of(facts, compact=True)
        assert estimate_tokens(prompt.system) + estimate_tokens(prompt.user) <= 900, type(facts)


@pytest.mark.parametrize("code", ["en", "ru"])
@pytest.mark.parametrize("name", ["village", "lighthouse"])
def test_bundled_stories_fit_into_the_context_that_ollama_has_by_default(name: str, code: str) -> None:
    world = remembering(world_of(read_template(name, code)))
    for one in range(3):  # as many as can be in one place are
        world = replace(world, characters=tuple(replace(each, place=world.places[one].id) for each in world.characters))
        place = world.places[one]
        told = dict.fromkeys((each.id for each in world.characters), f"{CELL.tried} {CELL.came_of_it}")
        facts = [scene_facts(world, place, told), *(intent_facts(world, each) for each in world.characters)]
        facts += [memory_facts(world, each, each.memory.cells[:3]) for each in world.characters]
        for known in facts:
            request = request_for(world, known, "", Settings())
            fit = fitting(request, known, 4096)
            assert 4096 - estimate_request(fit) >= 1000, request.purpose
            assert fit is request or isinstance(known, SceneFacts)
            assert fitting(request, known, 16_384) is fitting(request, known, None) is request


@pytest.mark.parametrize("code", ["en", "ru"])
@pytest.mark.parametrize("compact", [False, True])
def test_a_prompt_has_no_placeholder_and_no_none_in_it(code: str, *, compact: bool) -> None:
    for facts in all_facts(world_of(read_template("village", code))):
        prompt = prompt_of(facts, compact=compact)
        assert "None" not in prompt.system + prompt.user
        assert not re.search(r"\{[a-z_]+\}", prompt.system + prompt.user)


def test_the_system_message_stays_the_same_from_tick_to_tick() -> None:
    world = world_of(read_template("village", "en"))
    later = replace(remembering(world), tick=40)
    for now, then in zip(all_facts(world), all_facts(later), strict=True):
        assert prompt_of(now).system == prompt_of(then).system


@pytest.mark.parametrize("code", ["en", "ru"])
def test_a_prompt_begins_in_every_tick_with_what_seldom_changes(code: str) -> None:
    world = world_of(read_template("village", code))
    later = replace(remembering(world), tick=40)
    mind = replace(later.characters[0], internal_state="Afraid of the water.", external_intent="To leave.")
    later = replace(later, characters=(mind, *later.characters[1:]))
    for now, then in zip(all_facts(world), all_facts(later), strict=True):
        one, other = prompt_of(now).user, prompt_of(then).user
        same = one[: next(n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)]
        for text in (now.premise, now.me.name) if isinstance(now, IntentFacts) else ():
            assert text[:1200] in same
        if isinstance(now, SceneFacts):
            assert now.place.description in same


def test_the_game_master_is_told_no_secret_and_a_character_its_own_alone() -> None:
    intent, scene, memory = (prompt_of(facts).user for facts in all_facts(mill()))
    secrets = [one.secret for one in mill().characters if one.secret]
    assert secrets[0] in intent
    assert secrets[1] not in intent
    assert not any(secret in scene + memory for secret in secrets)


def test_both_languages_say_the_same_things() -> None:
    one, other = words_of("en"), words_of("ru")
    assert one.labels.keys() == other.labels.keys()
    assert one.fallbacks.keys() == other.fallbacks.keys()
    assert one.influences.keys() == other.influences.keys()
    assert one.problems.keys() == other.problems.keys() == set(DEGRADATIONS)
    assert list(one.page) == list(other.page)
    assert one.seat.keys() == other.seat.keys()
    assert one.full.keys() == one.brief.keys() == other.full.keys() == other.brief.keys()
    for words in (one, other):
        own = re.compile(f"[{words.letters}]")
        assert all(own.search(text) for text in (*words.labels.values(), *words.problems.values()))


def test_a_model_is_told_why_its_reply_could_not_be_used() -> None:
    for code, said in (("en", "No exit leads there."), ("ru", "Туда нет выхода.")):
        world = replace(mill(), language=code)
        facts = scene_facts(world, world.places[1], {})
        again = request_for(world, facts, "yard", Settings(), attempt=1, problem="impossible_place")
        assert said in again.messages[1].text()
        assert said not in request_for(world, facts, "yard", Settings()).messages[1].text()


def test_a_language_that_does_not_exist_is_told() -> None:
    with pytest.raises(ConfigError, match="choose en or ru"):
        read_template("village", "fr")
    with pytest.raises(SnapshotError, match="choose en or ru"):
        load(dump(replace(mill(), language="fr")), World)
