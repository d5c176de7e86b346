"""Whatever a model returns, the world stays one that can be."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox_kit import Model, advanced, mill, on_virtual_clock, plain, ring

from wsap_sandbox.model import Cell, TickRecord, World, after, dump, faults, load
from wsap_sandbox.tick.facts import Facts, SceneFacts
from wsap_sandbox.tick.replies import read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = (
    "anna",
    "boris",
    "vera",
    "mill",
    "yard",
    "road",
    "sack",
    "key",
    "stay",
    "here",
    "none",
    "happening",
    "ring",
    "",
)


class Fuzz:
    """Takes sound answers apart by a seeded lot."""

    def __init__(self, seed: int) -> None:
        self._lot = random.Random(seed)

    def __call__(self, _key: str, facts: Facts) -> object:
        answer = plain(facts)
        if isinstance(facts, SceneFacts):
            for one in answer["characters"].values():
                one.update(to=self._any(), order=self._lot.randint(-3, 9), triggers=[1, 2], unnoticed_by=[self._any()])
            answer["objects"] = [
                {"id": self._any(), "holder": self._any(), "condition": self._any()}
                for _ in range(self._lot.randint(0, 5))
            ]
            answer["place"] = {"moment": self._any(), "description": self._any(), "cause": self._any()}
        kind = self._lot.random()
        if kind < 0.15:
            return "".join(self._lot.choices('{}[]",: abc\\\n\ud800<|', k=self._lot.randint(0, 60)))
        if kind < 0.4:
            answer = self._spoilt(answer)
        text = json.dumps(answer)
        return text[: self._lot.randint(0, len(text))] if kind > 0.9 else text

    def _any(self) -> Any:
        return self._lot.choice((*NAMES, None, 3, [], {}, "A text of several words, more or less."))

    def _spoilt(self, value: Any) -> Any:
        lot = self._lot.random()
        if lot < 0.08:
            return self._any()
        if isinstance(value, dict):
            spoilt = {key: self._spoilt(one) for key, one in value.items() if self._lot.random() > 0.1}
            return spoilt | ({self._any() or "x": 1} if lot < 0.2 and isinstance(self._any(), str) else {})
        return [self._spoilt(one) for one in value] if isinstance(value, list) else value


def experienced(world: World, one: str) -> list[Cell]:
    """The cells that a character still has word for word, the oldest first."""
    memory = world.character(one).memory
    return [*memory.overflow, *reversed(memory.cells)]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
@pytest.mark.slow
def test_the_world_stays_whole_whatever_the_model_says(seed: int) -> None:
    world, fuzz = mill(), Fuzz(seed)
    for _ in range(4):
        done, _ = on_virtual_clock(advanced(world, Model(fuzz)))
        record = done.records[0]
        assert list(faults(done.world)) == []
        # What is stored is what goes on, and the log alone gives the same world.
        assert load(json.loads(json.dumps(dump(done.world))), World) == done.world
        assert after(world, load(json.loads(json.dumps(dump(record))), TickRecord)) == done.world
        ids = {one.id for one in (*world.places, *world.characters)}
        assert all({event.place, *event.witnesses} <= ids and event.actor in {"", *ids} for event in record.events)
        assert len({event.id for event in record.events}) == len(record.events)
        for one in world.characters:
            now = done.world.character(one.id)
            assert now.place in {one.place, *world.place(one.place).exits}
            assert (now.name, now.appearance, now.description, now.secret) == (
                one.name, one.appearance, one.description, one.secret,
            )  # fmt: skip
            # Nothing is forgotten that is not in a summary, and what is new is there.
            kept = experienced(done.world, one.id)
            change = next(change for change in record.characters if change.id == one.id)
            assert [*experienced(world, one.id), change.cell][change.summed_up :] == kept
            assert bool(change.summed_up) is (change.summary is not None)
        for place in world.places:
            change_of = next(change for change in record.places if change.id == place.id)
            assert (change_of.description is None) is (change_of.cause == "")
            if change_of.description is None:
                assert done.world.place(place.id).description == place.description
        world = done.world


@settings(max_examples=40, deadline=None)
@given(reply=st.text() | JSON.map(lambda value: json.dumps({"characters": value, "place": value, "objects": value})))
def test_no_reply_is_too_odd_to_be_read(reply: str) -> None:
    facts = FACTS
    reading = read(reply, facts, "mill", text=100)
    assert set(reading.scene.characters) <= {"anna", "boris"}
    json.dumps(dump(mill())).encode("utf-8")
    repr(reading).encode("utf-8")


def _facts() -> SceneFacts:
    done, _ = on_virtual_clock(advanced(mill(), Model()))
    facts = done.model.facts["1/scene/mill/0"]
    assert isinstance(facts, SceneFacts)
    return facts


FACTS = _facts()


def test_a_world_exported_and_imported_goes_on_the_same_byte_for_byte() -> None:
    whole, _ = on_virtual_clock(advanced(ring(6, 4, cells=2), Model(), 8))
    half, _ = on_virtual_clock(advanced(ring(6, 4, cells=2), Model(), 4))
    elsewhere = load(json.loads(json.dumps(dump(half.world))), World)
    rest, _ = on_virtual_clock(advanced(elsewhere, Model(), 4))
    assert json.dumps(dump(rest.world)) == json.dumps(dump(whole.world))
    assert [dump(record) for record in rest.records] == [dump(record) for record in whole.records[4:]]
    prompts = {key: request for key, request in whole.model.requests.items() if int(key.split("/")[0]) > 4}
    assert prompts == rest.model.requests


def test_a_summary_that_fails_leaves_the_cell_waiting_until_one_succeeds() -> None:
    def answer(key: str, facts: Facts) -> object:
        return "no" if "memory/" in key and facts.tick < 6 else plain(facts)

    world = replace(ring(1, 1, cells=2))
    seen = []
    for _ in range(8):
        done, _ = on_virtual_clock(advanced(world, Model(answer)))
        world = done.world
        memory = world.character("c0").memory
        seen.append(([cell.tick for cell in memory.cells], [cell.tick for cell in memory.overflow]))
    assert seen == [
        ([1], []),
        ([2, 1], []),
        ([3, 2], [1]),
        ([4, 3], [1, 2]),
        ([5, 4], [1, 2, 3]),
        ([6, 5], [4]),
        ([7, 6], []),
        ([8, 7], []),
    ]
    assert done.model.requests.keys() == {
        "8/intent/c0/0", "8/memory/c0/0", "8/scene/p0/0", "8/story/p0/0",
    }  # fmt: skip
