"""What a game answers is judged where it is read: fields, numbers, and everything in them at any depth."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from wsap_core.errors import WorldError
from wsap_core.protocol import (
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    Avatar,
    DeathEvent,
    Effect,
    EmbodiedObservation,
    Entity,
    Event,
    JackOutResult,
    Location,
    Observation,
    ParamDef,
    PortableItem,
    Receipt,
    RespawnOption,
    Selection,
    Terrain,
    Tick,
    TimelineBlock,
    TimelineEntry,
    TransitPackage,
    View,
)
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.specs import AdapterSpec, EpisodeSummary, ScoreMetric
from wsap_core.worlds import World
from wsap_core.worlds.answers import wrong_in

NAN, INFINITE, MANY = float("nan"), float("inf"), 2**63
BODY = Avatar("body-1", "liar")


class Liar:
    """Answers `act` with what it was given, and observes something plain."""

    game_description = "It lies."
    action_space = ActionSpace((ActionDef("ask"),))

    def __init__(self, answer: Any = None, seen: Any = None) -> None:
        self.answer = answer
        self.seen = Observation() if seen is None else seen

    def observe(self) -> Observation:
        seen: Observation = self.seen
        return seen

    def act(self, action: Action) -> ActionResult:
        result: ActionResult = self.answer
        return result

    def reset(self, seed: int | None = None) -> Observation:
        return self.observe()


def seat_of(game: Liar) -> Any:
    return World(AdapterSpec("liar", "Lies.", Liar), game).open_seat("me")


SEEN: tuple[tuple[dict[str, Any], str], ...] = (
    ({"status": {"health": NAN}}, "status.health that is not a finite number: nan"),
    ({"status": {"a": {"b": [1, -INFINITE]}}}, r"status.a.b\[1\] that is not a finite number: -inf"),
    ({"status": {"gold": MANY}}, "status.gold that is a whole number of more than 64 bits"),
    ({"status": {"gold": 10**5000}}, "status.gold that is a whole number of more than 64 bits"),
    ({"status": {"gold": Decimal("1.5")}}, "status.gold that is a Decimal, which is not JSON"),
    ({"status": {"gold": Fraction(1, 3)}}, "status.gold that is a Fraction, which is not JSON"),
    ({"status": {"gold": np.float32("nan")}}, "status.gold that is not a finite number: nan"),
    ({"status": {"map": np.array([[1.0, INFINITE]])}}, r"status.map\[0\]\[1\] that is not a finite number: inf"),
    ({"status": {"gold": {1: 2}}}, "status.gold with the key 1, which is not a text"),
    ({"inventory": {"wood": NAN}}, "inventory.wood that is not a whole number: nan"),
    ({"inventory": {"wood": 1.5}}, "inventory.wood that is not a whole number: 1.5"),
    ({"inventory": {"wood": True}}, "inventory.wood that is not a whole number: True"),
    ({"inventory": {"wood": "3"}}, "inventory.wood that is not a whole number: '3'"),
    ({"inventory": {"wood": -MANY}}, "inventory.wood that is a whole number of more than 64 bits"),
    ({"step": 2**31}, "a step beyond 2147483647: 2147483648"),
    ({"step": True}, "a step that does not count from 0: True"),
    ({"location": Location((1, NAN))}, r"location.coordinates\[1\] that is not a finite number: nan"),
    ({"location": Location(("a",))}, r"location.coordinates\[0\] that is not a number: 'a'"),  # type: ignore[arg-type]
    ({"nearby_entities": [Entity("cow", distance=INFINITE)]}, r"nearby_entities\[0\].distance that is not a finite"),
    ({"nearby_entities": [Entity("cow", distance=None)]}, r"nearby_entities\[0\].distance that is not a number: None"),  # type: ignore[arg-type]
    ({"nearby_entities": [Entity("cow", interactable=1)]}, r"nearby_entities\[0\].interactable that is not true or"),  # type: ignore[arg-type]
    (
        {"nearby_terrain": [Terrain("lava", distance="far")]},
        r"nearby_terrain\[0\].distance that is not a number: 'far'",
    ),  # type: ignore[arg-type]
    ({"active_effects": [Effect("slow", remaining=NAN)]}, r"active_effects\[0\].remaining that is not a finite"),
    ({"recent_events": [Event("x", step=0.5)]}, r"recent_events\[0\].step that is not a whole number: 0.5"),  # type: ignore[arg-type]
    ({"available_actions": [ActionAvailability("go", "no")]}, r"available_actions\[0\].available that is not true or"),  # type: ignore[arg-type]
    ({"time_of_day": 7}, "time_of_day that is not a text: 7"),
    ({"extras": {"far": INFINITE}}, "extras.far that is not a finite number: inf"),
)


@pytest.mark.parametrize(("fields", "why"), SEEN, ids=[why for _, why in SEEN])
def test_a_number_in_an_observation_that_is_none_is_refused_with_its_field(fields: dict[str, Any], why: str) -> None:
    seen = Observation(**fields)
    with pytest.raises(WorldError, match=f"The game 'liar' observed {why}"):
        asyncio.run(seat_of(Liar(seen=seen)).observe())
    with pytest.raises(WorldError, match=f"The game 'liar' answered 'ask' with ({why}|observation.{why})"):
        asyncio.run(seat_of(Liar(ActionResult(True, observation=seen))).act(Action("ask")))


@pytest.mark.parametrize(
    ("reward", "why"),
    [
        (NAN, "a reward that is not a finite number: nan"),
        (-INFINITE, "a reward that is not a finite number: -inf"),
        (np.float64("inf"), "a reward that is not a finite number: "),
        (True, "a reward that is not a finite number: True"),
        ("1", "a reward that is not a finite number: '1'"),
        (Decimal(1), "a reward that is not a finite number: Decimal"),
        (-1.7e308, "a reward beyond 1e.15: -1.7e.308"),
        (1e15 + 1, "a reward beyond 1e.15"),
        (10**16, "a reward beyond 1e.15: 10000000000000000"),
        (10**5000, "a reward beyond 1e.15: a number of thousands of digits"),
    ],
    ids=range(10),
)
def test_a_reward_that_cannot_be_added_up_is_refused(reward: Any, why: str) -> None:
    with pytest.raises(WorldError, match=f"'liar' answered 'ask' with {why}"):
        asyncio.run(seat_of(Liar(ActionResult(True, reward=reward))).act(Action("ask")))


def test_a_result_whose_done_or_success_is_a_number_is_refused() -> None:
    for field in ("done", "success"):
        with pytest.raises(WorldError, match=f"'ask' with {field} that is not true or false: 1"):
            asyncio.run(seat_of(Liar(replace(ActionResult(True), **{field: 1}))).act(Action("ask")))


GOOD: tuple[Any, ...] = (
    ActionResult(True, reward=1e15),
    ActionResult(True, reward=-1e15),
    ActionResult(True, reward=3),
    ActionResult(np.bool_(True), reward=np.float32(0.5), done=np.bool_(False)),  # type: ignore[arg-type]
    Observation({"at": 1_790_000_000_000_000_000, "id": 2**63 - 1, "tiny": 5e-324, "huge": 1.7e308}),
    Observation({"text": "9" * 10_000}, {"wood": np.int64(3), "stone": 2.0}),  # type: ignore[dict-item]
    Observation({"fraction": 0.000123456789012345678}, location=Location(np.array([1.5, 2.0]))),  # type: ignore[arg-type]
    EmbodiedObservation(avatar=replace(BODY, health=np.float32(3), position=(1, 2))),
    Tick(2**31 - 1, {"deep": [{"x": -(2**63 - 1)}]}),
)


@pytest.mark.parametrize("answer", GOOD, ids=range(len(GOOD)))
def test_numbers_that_can_be_kept_pass_those_of_numpy_among_them_and_can_be_read_again(answer: Any) -> None:
    assert wrong_in(answer) == ""
    assert wrong_in(answer) == "", "a second look, at what is known to be good"
    assert dumps(Codec([EmbodiedObservation]).loads(type(answer), dumps(answer))) == dumps(answer)


OTHERS: tuple[tuple[Any, str], ...] = (
    (replace(BODY, health=NAN), "health that is not a finite number: nan"),
    (replace(BODY, total_playtime=10**30), "total_playtime that is a whole number of more than 64 bits"),
    (replace(BODY, total_playtime=1.5), "total_playtime that is not a whole number: 1.5"),
    (replace(BODY, position=("x",)), r"position\[0\] that is not a number: 'x'"),
    (replace(BODY, inventory={"gold": INFINITE}), "inventory.gold that is not a whole number: inf"),
    (replace(BODY, appearance={"size": NAN}), "appearance.size that is not a finite number: nan"),
    (EmbodiedObservation(avatar=BODY, vision_cone=NAN), "vision_cone that is not a finite number: nan"),
    (EmbodiedObservation(avatar=replace(BODY, health="3")), "avatar.health that is not a number: '3'"),  # type: ignore[arg-type]
    (DeathEvent("body-1", "fall", xp_lost=INFINITE), "xp_lost that is not a finite number: inf"),
    (DeathEvent("b", "fall", items_dropped={"a": 0.5}), "items_dropped.a that is not a whole number: 0.5"),
    (DeathEvent("b", "fall", respawn_options=[RespawnOption("bed", cost={"gold": NAN})]), "cost.gold that is not a"),
    (JackOutResult(True, session_stats={"seconds": NAN}), "session_stats.seconds that is not a finite number: nan"),
    (Receipt("t", bonuses_applied={"rule": {"damage": INFINITE}}), "bonuses_applied.rule.damage that is not a finite"),
    (TransitPackage("t", [PortableItem("i", "pick", "tool", 1.5)]), r"items\[0\].tier that is not a whole number"),  # type: ignore[arg-type]
    (TransitPackage("t", [PortableItem("i", "a", "tool", 2, {"price": NAN})]), r"items\[0\].properties.price that is"),
    (Tick(-1), "a number that does not count from 0: -1"),
    (Tick(2**31), "a number beyond 2147483647"),
    (Tick(1, {"gold": NAN}), "body.gold that is not a finite number: nan"),
    (View([TimelineBlock([TimelineEntry("x", 1.5)])]), r"blocks\[0\].entries\[0\].number that is not a whole"),  # type: ignore[arg-type]
    (View(selections=[Selection("tick", highest=NAN)]), r"selections\[0\].highest that is not a whole number: nan"),  # type: ignore[arg-type]
    (Action("go", {"far": NAN}), "parameters.far that is not a finite number: nan"),
    (ActionSpace((ActionDef("go", "", (ParamDef("x", schema={"maximum": NAN}),)),)), "schema.maximum that is not a"),
)


@pytest.mark.parametrize(("answer", "why"), OTHERS, ids=[why for _, why in OTHERS])
def test_bodies_deaths_items_ticks_and_views_are_judged_alike(answer: Any, why: str) -> None:
    assert re.search(why, wrong_in(answer))


@dataclass(frozen=True)
class Weighed(Observation):
    """An observation with a field of its own, declared as a class that annotates without the future."""

    weight: float = 0.0
    wire_type: ClassVar[str] = "weighed"


def test_the_own_fields_of_a_game_are_judged_by_what_they_declare() -> None:
    assert wrong_in(Weighed(weight=1.0)) == ""
    assert wrong_in(Weighed(weight=NAN)) == "weight that is not a finite number: nan"
    assert wrong_in(Weighed(weight="1")) == "weight that is not a number: '1'"  # type: ignore[arg-type]


def test_what_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    assert wrong_in(Observation(loop)) == "something nested too deeply"


class Closing(Liar):
    """Ends without an action of its seat."""

    def closing_result(self) -> ActionResult | None:
        result: ActionResult | None = self.answer
        return result

    def default_action(self) -> Action:
        return Action("ask", {"far": NAN})


def test_a_last_result_and_a_default_action_are_judged_too() -> None:
    seat = seat_of(Closing(ActionResult(True, reward=NAN, done=True)))
    with pytest.raises(WorldError, match="'liar' closed with a reward that is not a finite number: nan"):
        asyncio.run(seat.observe())
    with pytest.raises(WorldError, match=r"'liar' has as its default action parameters\.far that is not a finite"):
        seat.default_action()


@pytest.mark.parametrize(
    ("compute", "why"),
    [
        (lambda episodes: NAN, "The score 'wins' is nan, not a number within 1e.15 of zero"),
        (lambda episodes: 1e16, "The score 'wins' is 1e.16"),
        (lambda episodes: 1 // 0, "The score 'wins' can't be computed: ZeroDivisionError"),
        (lambda episodes: "many", "The score 'wins' can't be computed: ValueError"),
        (lambda episodes: 10**400, "The score 'wins' can't be computed: OverflowError"),
    ],
)
def test_a_score_that_is_no_number_is_the_games_fault(compute: Callable[[Any], Any], why: str) -> None:
    with pytest.raises(WorldError, match=why):
        ScoreMetric("wins", "Wins.", compute).of([EpisodeSummary(0, 1, 0.0, (), True)])
