"""What somebody outside can do to a world, and how far memories drift."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sandbox_kit import mill, played

from wsap_core.errors import SnapshotError, UsageError
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import Cell, Character, LedgerEvent, Memory, Place, World, WorldObject, dump, faults, load
from wsap_sandbox.story.chapters import distortion, drift
from wsap_sandbox.tick.facts import SceneFacts
from wsap_sandbox.tick.influence import influenced, with_character

EN = words_of("en")


def under(world: World, **body: Any) -> World:
    return influenced(world, body)[0]


def test_a_whisper_is_heard_by_one_alone_and_remembered() -> None:
    done = played(under(mill(), kind="whisper", character="anna", text="Look below the stairs."))
    told = {key: " ".join(str(m.content) for m in request.messages) for key, request in done.model.requests.items()}
    assert [key for key, prompt in told.items() if "below the stairs" in prompt] == ["1/intent/anna/0"]
    event = done.records[0].events[0]
    assert (event.kind, event.witnesses, event.public) == ("influence", ("anna",), False)
    cell = done.world.character("anna").memory.cells[0]
    assert cell.came_of_it.startswith(EN.say("heard", what="Look below the stairs."))
    assert event.id in cell.events
    assert "stairs" not in json.dumps(dump(done.world)["places"])
    # It is over then.
    assert done.world.influences == ()
    assert "stairs" not in str(played(done.world).model.requests["2/scene/mill/0"])


@pytest.mark.parametrize("text", ["by name", "by name.", "by name!", "„by name?”", "(by name?)"])
def test_a_whisper_does_not_run_into_the_rest_of_the_memory(text: str) -> None:
    cell = played(under(mill(), kind="whisper", character="anna", text=text)).world.character("anna").memory.cells[0]
    heard, rest = cell.came_of_it.split(" I saw what there is.")
    assert (heard.removeprefix(EN.say("heard", what="")), rest) == (f"{text}." if text == "by name" else text, "")


def test_an_event_happens_first_in_its_scene_and_everybody_there_notices_it() -> None:
    done = played(under(mill(), kind="event", place="mill", text="The wheel breaks."))
    facts = done.model.facts["1/scene/mill/0"]
    assert isinstance(facts, SceneFacts)
    assert facts.influences == ("The wheel breaks.",)
    first = done.records[0].events[0]
    assert (first.order, first.text, first.witnesses) == (1, "The wheel breaks.", ("anna", "boris"))
    assert "The wheel breaks." in str(done.model.requests["1/story/mill/0"])


def test_an_object_is_put_down_or_into_somebodys_hands() -> None:
    world = under(mill(), kind="object", place="yard", name="A Red Apple", description="Shiny.")
    assert world.place("yard").objects == ("a-red-apple",)
    assert world.object("a-red-apple") == WorldObject("a-red-apple", "A Red Apple", "Shiny.")
    world = under(world, kind="object", character="vera", name="a red apple")
    assert world.character("vera").inventory == ("a-red-apple-2",)
    world = under(world, kind="object", place="yard", name="Яблоко")
    assert world.place("yard").objects == ("a-red-apple", "object")
    assert list(faults(world)) == []


@pytest.mark.parametrize(
    ("part", "field", "where"),
    [
        ("yard", "description", "yard"),
        ("anna", "appearance", "mill"),
        ("key", "condition", "mill"),
        ("sack", "name", "mill"),
    ],
)
def test_an_edit_that_can_be_seen_is_noticed_where_it_happens(part: str, field: str, where: str) -> None:
    world = under(mill(), kind="edit", id=part, field=field, text="Not as before.")
    assert [one.place for one in world.influences] == [where]
    assert "Not as before." in json.dumps(dump(world))


def test_an_edit_of_somebodys_inner_life_is_noticed_by_nobody() -> None:
    world = under(mill(), kind="edit", id="boris", field="secret", text="I am the miller's son.")
    assert world.character("boris").secret == "I am the miller's son."
    record = played(world).records[0]
    assert [event.witnesses for event in record.events if event.kind == "influence"] == [()]


def test_people_and_objects_are_moved() -> None:
    world = under(under(mill(), kind="move", id="anna", to="road"), kind="move", id="key", to="yard")
    assert world.character("anna").place == "road"
    assert (world.character("anna").inventory, world.place("yard").objects) == ((), ("key",))
    world = under(world, kind="move", id="key", to="vera")
    assert world.character("vera").inventory == ("key",)
    assert list(faults(world)) == []


def test_who_is_taken_over_does_what_somebody_outside_wants_and_is_not_asked() -> None:
    world = under(mill(), kind="take_over", character="anna", text="I burn the ledger.")
    done = played(world)
    assert "1/intent/anna/0" not in done.model.requests
    assert done.records[0].calls == 2 + 2 * 3
    change = done.records[0].characters[0]
    assert (change.intention, change.decided_by) == ("I burn the ledger.", "outside")
    assert "2/intent/anna/0" in played(done.world).model.requests


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "Unknown influence None"),
        ({"kind": "bless"}, "choose one of whisper, event"),
        ({"kind": "whisper", "character": "nobody", "text": "x"}, "no character 'nobody'"),
        ({"kind": "whisper", "character": "anna", "text": " \u200b "}, "'text'"),
        ({"kind": "whisper", "character": "anna"}, "'text'"),
        ({"kind": "event", "place": "moon", "text": "x"}, "there are mill, yard, road"),
        ({"kind": "event", "place": "mill", "text": "x", "when": "now"}, "'when'"),
        ({"kind": "edit", "id": "anna", "field": "place", "text": "x"}, "can't be edited"),
        ({"kind": "edit", "id": "nothing", "field": "name", "text": "x"}, "no place, character or object"),
        ({"kind": "move", "id": "mill", "to": "yard"}, "is a place"),
        ({"kind": "move", "id": "anna", "to": "vera"}, "no place 'vera'"),
        ({"kind": "object", "name": "x"}, "'place'"),
        (
            {"kind": "edit", "id": "boris", "field": "name", "text": "Аnna"},
            "'Аnna' of the character 'boris'",
        ),
        ({"kind": "edit", "id": "vera", "field": "name", "text": "boris"}, "looks like that of 'boris'"),
        ({"kind": "edit", "id": "road", "field": "name", "text": "The mil1"}, "looks like that of 'mill'"),
        ({"kind": "object", "place": "yard", "name": "a sасk of flour"}, "looks like that of 'sack'"),
        ({"kind": "move", "id": "sack", "to": "yard"}, r"'a sack of flour' \(sack\) can't be carried"),
    ],
)
def test_an_influence_that_cannot_be_says_why_and_changes_nothing(body: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        influenced(replace(mill(), fixed=("sack",)), body)


def test_a_newcomer_is_noticed() -> None:
    new = Character("dora", "Dora", "A pedlar.", "Kind.", "mill")
    world = with_character(mill(), new)
    assert "Dora" in played(world).records[0].events[0].text
    with pytest.raises(UsageError, match="'anna'"):
        with_character(mill(), replace(new, id="anna"))
    for name in ("ANNA", "anna ", "A\u200bnna", "Аnna", "An-na"):
        with pytest.raises(UsageError, match=r"can't enter: the name .* looks like that of 'anna'"):
            with_character(mill(), replace(new, name=name))
    assert list(faults(world)) == []


def test_a_world_begun_with_names_alike_still_takes_other_influences() -> None:
    world = mill()
    alike = replace(world, characters=(*world.characters[:2], replace(world.characters[2], name="ANNA")))
    assert load(dump(alike), World) == alike
    assert under(alike, kind="edit", id="boris", field="name", text="Bert").character("boris").name == "Bert"


# --- stored worlds -------------------------------------------------------------------------------


def test_data_of_another_version_or_damaged_is_refused() -> None:
    data = dump(mill())
    with pytest.raises(SnapshotError, match="version 2"):
        load({**data, "version": 2}, World)
    with pytest.raises(SnapshotError, match=r"places.0.name"):
        load({**data, "places": [{"id": "mill"}]}, World)
    with pytest.raises(SnapshotError, match="the object 'key' is in two places"):
        load(
            dump(replace(mill(), places=(replace(mill().places[0], objects=("key", "sack")), *mill().places[1:]))),
            World,
        )


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"places": (Place("mill", "m", "d", exits=("moon",)),), "characters": ()}, "an exit of mill leads to 'moon'"),
        ({"characters": (Character("x", "X", "a", "d", "moon"),)}, "x is in 'moon'"),
        ({"objects": (WorldObject("stay", "s"),)}, "the id 'stay' is reserved"),
        ({"objects": (WorldObject("anna", "s"),)}, "the id 'anna' is used twice"),
        ({"cells": 0}, "cells = 0 is out of range"),
        ({"cells": 11}, "cells = 11 is out of range"),
        ({"language": "fr"}, "the language 'fr' is unknown; choose en or ru"),
    ],
)
def test_each_reason_why_a_world_cannot_be_is_given(broken: dict[str, Any], told: str) -> None:
    assert any(told in fault for fault in faults(replace(mill(), **broken)))


# --- drift ---------------------------------------------------------------------------------------


def event(number: int, text: str, *witnesses: str) -> LedgerEvent:
    return LedgerEvent(f"{number}.mill.1", number, 1, "mill", "act", text, witnesses=witnesses)


def test_a_memory_is_measured_against_what_was_witnessed() -> None:
    events = [event(1, "Boris carries nine sacks to the cellar.", "anna"), event(2, "The wheel breaks.", "anna")]
    assert distortion("I saw Boris carrying sacks into the cellar; the wheel broke.", events).forgotten == 0
    assert distortion("", events) == distortion("The garrison attacked yesterday.", []).__class__(0.0, 1.0)
    far = distortion("Dragons attacked yesterday.", events)
    assert (far.invented, far.forgotten) == (1.0, 1.0)
    near = distortion("Boris carried sacks.", events)
    assert near.invented < far.invented
    assert near.forgotten == 0.5


def test_drift_leaves_out_what_the_character_did_not_notice() -> None:
    cell = Cell(3, "I tried to sleep.", "The storm kept me awake.", "", ("3.mill.1",))
    one = replace(mill().character("anna"), memory=Memory((cell,), "Boris sold flour."))
    ledger = [
        event(1, "Boris sold flour.", "anna"),
        event(2, "Vera burns the letters.", "vera"),
        event(3, "The storm rages.", "anna"),
    ]
    (newest, cell_measure), (_, summary) = drift(one, ledger)
    assert summary == distortion("Boris sold flour.", [ledger[0]])
    assert (summary.invented, summary.forgotten) == (0.0, 0.0)
    assert newest == 3
    assert cell_measure.forgotten == 0.0
