"""Nobody gets to know what is private to somebody else, whatever the model does with what it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest
from sandbox_kit import Data, Model, advanced, doing, mill, on_virtual_clock, plain, played, scene

from wsap_sandbox.model import Cell, Character, Memory, World, dump
from wsap_sandbox.tick import Settings
from wsap_sandbox.tick.facts import Facts, IntentFacts, MemoryFacts, SceneFacts, StoryFacts, facts_data, intent_facts
from wsap_sandbox.tick.influence import influenced
from wsap_sandbox.tick.privacy import withhold

LONG = Settings(text=2500)


def marked(one: Character) -> Character:
    """The character with a word in each private part that stands nowhere else."""
    mark = f"{one.id}zq"
    return replace(
        one,
        description=f"She is {mark}nature. {one.description}",
        triggers=(*one.triggers, f"When the bell rings I think of {mark}trigger and run."),
        secret=f"{mark}secret.",
        internal_state=f"Full of {mark}state today.",
        external_intent=f"To reach the {mark}goal before the winter comes over the hills.",
        memory=Memory(
            (Cell(0, "I tried to forget.", f"I met {mark}met at dawn.", f"{mark}thought is not far from here."),),
            f"Long ago there was {mark}summary and I was young.",
        ),
    )


def crowd() -> World:
    """The mill with marked people, all at one place, and a whisper to one of them."""
    world = mill()
    people = tuple(replace(marked(one), place="mill") for one in world.characters)
    world = replace(world, characters=people)
    return influenced(world, {"kind": "whisper", "character": "anna", "text": "annazqwhisper"})[0]


def everything(key: str, facts: Facts, model: Model) -> str:
    """The whole prompt in every field of the reply, and before it all facts, which a prompt may have cut."""
    request = model.requests[key]
    copied = " ".join((facts_text(facts), *(str(message.content) for message in request.messages)))
    return json.dumps(filled(facts, copied))


def filled(facts: Facts, text: str) -> Data:
    match facts:
        case IntentFacts():
            return {"intention": text}
        case StoryFacts():
            return {"story": text}
        case MemoryFacts():
            return {"summary": text}
        case SceneFacts():
            names = ("event", "state", "goal", "tried", "came_of_it", "interpretation")
            given = {one.person.id: dict.fromkeys(names, text) for one in facts.actors}
            return scene(facts, **given) | {
                "objects": [{"id": "sack", "holder": "here", "condition": text}] if facts.actors else [],
                "happenings": [text, text],
                "place": {"moment": text, "description": text, "cause": "happening"},
            }


def copied_ticks(
    world: World, ticks: int, reply: Callable[[str, Facts, Model], str], settings: Settings
) -> Iterator[tuple[World, list[str], Model]]:
    """The world after each tick, with its stories."""
    for _ in range(ticks):
        model = Model()
        model.answer = lambda key, facts, model=model: reply(key, facts, model)  # type: ignore[misc]
        done, _ = on_virtual_clock(advanced(world, model, 1, settings))
        world = done.world
        yield world, [story.text for story in done.stories], model


def strangers_marks(text: str, one: str = "") -> set[str]:
    """Which marks of people other than the given one are in a text."""
    parts = ("nature", "trigger", "secret", "state", "goal", "met", "thought", "summary", "whisper")
    people = ("anna", "boris", "vera")
    return {f"{who}zq{part}" for who, part in product(people, parts) if who != one and f"{who}zq{part}" in text}


@pytest.mark.parametrize("settings", [LONG, Settings()], ids=["long", "usual"])
def test_a_model_that_copies_its_prompt_into_every_field_gives_no_secret_away(settings: Settings) -> None:
    for world, stories, model in copied_ticks(crowd(), 3, everything, settings):
        for one in world.characters:
            memory = json.dumps(dump(replace(world, characters=(one,), places=world.places))["characters"])
            assert strangers_marks(memory, one.id) == set(), "in a memory, a state or a goal"
            assert strangers_marks(json.dumps(facts_data(intent_facts(world, one))), one.id) == set(), "observed"
        assert strangers_marks(json.dumps(dump(replace(world, characters=()))["places"])) == set(), "in a place"
        for key, request in model.requests.items():
            phase, subject = key.split("/")[1:3]
            prompt = " ".join(str(message.content) for message in request.messages)
            if phase == "story":
                assert strangers_marks(prompt) == set(), "in what the narrator is told"
            elif phase != "scene":
                assert strangers_marks(prompt, subject) == set(), f"in what {phase} is told"
        assert [strangers_marks(story) for story in stories] == [set()] * 3


@pytest.mark.slow
def test_the_copying_model_is_shown_secrets_indeed_and_one_keeps_its_own() -> None:
    *_, (world, _, model) = copied_ticks(crowd(), 2, everything, LONG)
    prompt = str(model.requests["2/scene/mill/0"].messages[1].content)
    assert {"annazqnature", "annazqtrigger", "boriszqnature"} <= strangers_marks(prompt)
    assert "annazqsecret" in model.facts["2/scene/mill/0"].actors[0].intention  # type: ignore[union-attr]
    kept = " ".join(cell.text for cell in world.character("anna").memory.cells)
    assert {"annazqsecret", "annazqwhisper"} <= strangers_marks(kept)


def test_the_game_master_sees_triggers_and_states_of_those_present_and_no_secret_or_memory() -> None:
    model = played(crowd()).model
    told = str(model.requests["1/scene/mill/0"].messages[1].content)
    seen = {f"{one}zq{part}" for one in ("anna", "boris", "vera") for part in ("nature", "trigger", "state", "goal")}
    assert strangers_marks(told) == seen
    assert strangers_marks(str(model.requests["1/scene/yard/0"].messages[1].content)) == set()


def test_what_somebody_did_unnoticed_is_not_remembered_by_those_who_did_not_notice() -> None:
    def answer(_key: str, facts: Facts) -> object:
        if not (isinstance(facts, SceneFacts) and facts.actors and facts.place.id == "mill"):
            return plain(facts)
        theft = "Boris slips the small key into his boot."
        return scene(
            facts,
            boris=doing("Boris", event=theft, unnoticed_by=["anna"]),
            anna={"order": 2, "interpretation": f"I know it. {theft} He will pay."},
        )

    done = played(mill(), answer)
    by_text = {event.text: event for event in done.records[0].events}
    assert by_text["Boris slips the small key into his boot."].witnesses == ("boris",)
    cell = done.world.character("anna").memory.cells[0]
    assert cell.interpretation == "I know it. .... He will pay."
    assert cell.events == ("1.mill.2",)
    assert done.world.character("boris").memory.cells[0].events == ("1.mill.1", "1.mill.2")


def test_what_is_public_is_not_withheld_though_it_is_part_of_somebodys_nature() -> None:
    world = mill()
    anna = replace(world.character("anna"), description="A tall woman in a grey coat. Born in the far north country.")
    world = replace(world, characters=(anna, *world.characters[1:]))

    def answer(_key: str, facts: Facts) -> object:
        text = "A tall woman in a grey coat, born in the far north country, comes in."
        if isinstance(facts, SceneFacts) and facts.place.id == "mill":
            return scene(facts, boris={"tried": text})
        return plain(facts)

    done = played(world, answer)
    assert done.world.character("boris").memory.cells[0].tried == "A tall woman in a grey coat, ..., comes in."
    assert [(one.subject, one.kind) for one in done.records[0].degraded] == [("boris", "withheld")]


def test_an_intention_that_tells_a_secret_word_for_word_is_not_heard_that_way() -> None:
    world = mill()
    secret = world.character("anna").secret
    done = played(world, lambda _key, facts: filled(facts, facts_text(facts)), seats={"anna": secret})
    assert "third stone" not in json.dumps(dump(done.world)["places"])
    assert "third stone" not in json.dumps(dump(done.records[0])["events"])


def facts_text(facts: Facts) -> str:
    return json.dumps(facts_data(facts)).replace('"', " ")


def test_runs_of_forbidden_words_become_an_ellipsis_whatever_stands_between_them() -> None:
    assert withhold("She said: I HID, the – key today!", frozenset({"i hid the key"})) == "She said: ... today!"
    assert withhold("I hid the key under", frozenset({"i hid the key", "hid the key under"})) == "..."
    assert withhold("Nothing here.", frozenset({"i hid the key"})) == "Nothing here."
    assert withhold("", frozenset({"x"})) == ""
