"""Messages to JSON and back: nothing is lost, and equal values give equal bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core import (
    Action,
    ActionResult,
    Avatar,
    AvatarState,
    Codec,
    EmbodiedObservation,
    Entity,
    Event,
    HistoryEntry,
    JackInResult,
    Location,
    Memory,
    Observation,
    RespawnOption,
)
from wsap_core.errors import WireError
from wsap_core.protocol import PROTOCOL_TYPES, Part
from wsap_core.protocol.base import wire_type
from wsap_core.protocol.wire import dumps, encode
from wsap_nexus.schemas import MESSAGES

BODY = Avatar("avatar-1", "crafter", "ada", AvatarState.BOUND, "Ada", (1.0, 2.5))


@dataclass(frozen=True)
class WeatherObservation(Observation):
    """What a plugin's world adds to an observation."""

    wind: float = field(default=0.0, kw_only=True)
    near: Location | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class DivingObservation(EmbodiedObservation):
    """What a plugin's world adds to an embodied observation, under a tag of its own."""

    wire_type = "reef.Diving"
    air: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class Machine(Entity):
    """A kind of entity of a plugin's."""

    power: int = 0


DIVING = DivingObservation(step=3, avatar=BODY, air=7, status={"cold": True})


def parts_of(value: Any) -> dict[str, Any]:
    """What a message holds, field by field, found without the code under test."""
    if is_dataclass(value):
        found = {f.name: parts_of(getattr(value, f.name)) for f in fields(value)}
        return {"class": type(value).__name__, **found}
    if isinstance(value, list | tuple):
        return {"items": [parts_of(item) for item in value]}
    if isinstance(value, Mapping):
        return {"keys": {key: parts_of(item) for key, item in value.items()}}
    return {"value": value}


@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("name", sorted(MESSAGES))
@given(data=st.data())
def test_a_message_comes_back_as_it_was(name: str, messages: Mapping[str, Any], data: st.DataObject) -> None:
    sent = data.draw(messages[name])
    received = Codec().loads(MESSAGES[name], dumps(sent))
    assert received == sent
    assert parts_of(received) == parts_of(sent)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_text_is_canonical_whoever_writes_it_again(messages: Mapping[str, Any], data: st.DataObject) -> None:
    text = dumps(data.draw(messages["HistoryEntry"]))
    # The reference: the standard library, told to sort and to leave no space. All floats here are either
    # fractions or beyond 2**53, where the two agree; whole ones are read back as integers.
    assert json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) == text
    assert dumps(json.loads(text)) == text


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_key_order_and_whole_floats_make_no_difference(messages: Mapping[str, Any], data: st.DataObject) -> None:
    plain = json.loads(dumps(data.draw(messages["ActionResult"])))

    def disguise(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: disguise(value[key]) for key in sorted(value, reverse=True)}
        if isinstance(value, list):
            return tuple(disguise(item) for item in value)
        return float(value) if type(value) is int and abs(value) < 2**53 else value

    assert dumps(disguise(plain)) == dumps(plain)


def test_whole_numbers_are_written_without_a_fraction() -> None:
    assert dumps({"b": 1.0, "a": [-0.0, 2.5, 1e300, True]}) == '{"a":[0,2.5,1e+300,true],"b":1}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_json_has_no_number_for_is_refused_both_ways(value: float) -> None:
    with pytest.raises(WireError, match="be encoded as JSON"):
        dumps(Observation(status={"heat": value}))
    with pytest.raises(WireError, match="not a number"):
        Codec().loads(Observation, json.dumps({"status": {"heat": value}}))
    with pytest.raises(WireError, match="finite"):
        Codec().decode(Entity, {"type": "sun", "distance": value})


@pytest.mark.parametrize("value", [object(), {1: "a"}, {"a": {1, 2}}, b"bytes"])
def test_what_json_has_no_word_for_is_refused_by_name(value: Any) -> None:
    with pytest.raises(WireError, match="JSON"):
        dumps(Action("wave", {"x": value}))


@pytest.mark.slow
def test_the_same_message_gives_the_same_bytes_whatever_the_hash_seed() -> None:
    program = (
        "from wsap_core import *; from wsap_core.protocol.wire import dumps;"
        "print(dumps(Observation({k: 1 for k in 'hunger thirst energy'.split()}, extras={'b': 1, 'a': 2})))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(texts) == 1


# --- subclasses ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "holder",
    [
        ActionResult(True, observation=DIVING),
        JackInResult(True, BODY, initial_observation=DIVING),
        HistoryEntry(DIVING, Action("swim"), ActionResult(True, observation=DIVING)),
        Memory(history=[HistoryEntry(WeatherObservation(wind=3.5, near=Location((1, 2))), Action("wait"))]),
        Observation(nearby_entities=[Machine("mill", power=3), Entity("tree")]),
    ],
    ids=lambda holder: type(holder).__name__,
)
def test_what_a_plugin_adds_is_kept_wherever_the_base_type_is_expected(holder: Any) -> None:
    codec = Codec([WeatherObservation, DivingObservation, Machine])
    received = codec.loads(type(holder), dumps(holder))
    assert received == holder
    assert parts_of(received) == parts_of(holder)


def test_an_embodied_observation_needs_no_codec_that_knows_it() -> None:
    sent = ActionResult(True, observation=EmbodiedObservation(avatar=BODY, facing="north"))
    assert Codec().loads(ActionResult, dumps(sent)) == sent


def test_an_unknown_kind_of_observation_keeps_what_it_brought_and_is_passed_on_unchanged() -> None:
    text = dumps(ActionResult(True, observation=DIVING))
    received = Codec().loads(ActionResult, text)
    assert type(received.observation) is Observation
    assert received.observation.step == 3
    assert received.observation.status == {"cold": True}
    assert received.observation.extras["air"] == 7
    assert dumps(received) == text
    assert Codec([DivingObservation]).loads(ActionResult, dumps(received)).observation == DIVING


@given(st.dictionaries(st.sampled_from(["extras", "air", "step2", "$typo", "ünknown"]), st.integers(), max_size=4))
def test_an_unknown_kind_may_use_any_field_name(fields_of_theirs: dict[str, int]) -> None:
    data = {**encode(Observation(step=2)), "$type": "theirs", **fields_of_theirs}
    assert encode(Codec().decode(Observation, data)) == data


def test_a_tag_chooses_no_class_that_does_not_belong_there() -> None:
    codec = Codec([Machine])
    received = codec.decode(Observation, {"$type": "Machine", "type": "mill", "power": 3})
    assert type(received) is Observation
    assert received.extras == {"$type": "Machine", "type": "mill", "power": 3}


def test_two_classes_under_one_tag_are_refused_with_both_names() -> None:
    def another() -> type:
        @dataclass(frozen=True)
        class Machine(Entity):
            steam: bool = False

        return Machine

    with pytest.raises(WireError, match=r"Machine and .*Machine have the tag 'Machine'"):
        Codec([Machine, another()])


def test_only_a_subclass_needs_a_tag() -> None:
    assert wire_type(Observation) is None
    assert wire_type(EmbodiedObservation) == "EmbodiedObservation"
    assert wire_type(DivingObservation) == "reef.Diving"


def test_a_field_of_a_newer_minor_version_is_passed_over() -> None:
    received = Codec().decode(Entity, {"type": "tree", "smell": "resin"})
    assert received == Entity("tree")


def test_extras_can_not_be_smuggled_over_the_fields_they_stand_beside() -> None:
    received = Codec().decode(Observation, {"step": 1, "extras": {"step": 99}})
    assert encode(received)["step"] == 1
    assert encode(Observation(step=1, extras={"step": 99}))["step"] == 1


# --- what is wrong is refused -------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "data", "words"),
    [
        (Entity, {}, "type: Field required"),
        (Entity, {"type": 3}, "type: Input should be a valid string"),
        (Entity, {"type": "a", "distance": "3"}, "distance"),
        (Entity, {"type": "a", "interactable": 1}, "interactable"),
        (Observation, {"step": "3"}, "step"),
        (Observation, {"step": True}, "step"),
        (Observation, {"step": 2.5}, "step"),
        (Observation, {"nearby_entities": [{"type": "a"}, {"type": None}]}, "nearby_entities.1.type"),
        (Observation, {"nearby_entities": "tree"}, "nearby_entities"),
        (Observation, [], "it"),
        (Avatar, {"avatar_id": "a", "game_id": "g", "state": "asleep"}, "state"),
        (ActionResult, {"success": True, "observation": {"$type": "EmbodiedObservation"}}, "observation.avatar"),
    ],
)
def test_wrong_data_is_refused_with_its_place_in_one_line(cls: type, data: Any, words: str) -> None:
    with pytest.raises(WireError) as caught:
        Codec().decode(cls, data, where="reply")
    assert words in str(caught.value)
    assert str(caught.value).startswith("The reply is not a valid ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a":' * 100_000, b"\xff\xfe", "9" * 10_000])
def test_text_that_is_not_a_message_is_refused_whatever_it_is(text: str | bytes) -> None:
    with pytest.raises(WireError):
        Codec().loads(Observation, text)


def test_whole_floats_are_whole_numbers() -> None:
    assert Codec().decode(Event, {"description": "x", "step": 3.0}).step == 3


def test_a_place_to_respawn_is_a_text_or_coordinates() -> None:
    assert Codec().decode(RespawnOption, {"id": "bed", "location": "home"}).location == "home"
    assert Codec().decode(RespawnOption, {"id": "bed", "location": [1, 2]}).location == (1, 2)


EVERY_MODULE = """
import importlib, pkgutil, wsap_core
for module in pkgutil.walk_packages(wsap_core.__path__, "wsap_core."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


@pytest.mark.parametrize("also", ["import wsap_core.authoring.grid", EVERY_MODULE], ids=["grid", "all"])
def test_what_is_decoded_does_not_depend_on_what_was_imported_before(also: str) -> None:
    program = f"""
from wsap_core.protocol import Observation
from wsap_core.protocol.wire import Codec

TOLD = {{"$type": "GridObservation", "rows": ["@"], "avatar": None}}

def decoded():
    codec = Codec()
    tags = ("EmbodiedObservation", "GridObservation", "Possible")
    return [codec.lookup(tag) for tag in tags], codec.decode(Observation, TOLD)

before = decoded()
{also}
assert decoded() == before, (decoded(), before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_protocols_own_types_are_those_that_its_package_names() -> None:
    def below(cls: type) -> set[type]:
        return {cls}.union(*map(below, cls.__subclasses__()))

    defined = {cls for cls in below(Part) if cls.__module__.startswith("wsap_core.protocol.")}
    assert set(PROTOCOL_TYPES) == defined
    assert {cls.__name__ for cls in defined if wire_type(cls)} == {"EmbodiedObservation", "Possible"}
