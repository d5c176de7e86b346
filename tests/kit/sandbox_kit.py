"""Worlds of the sandbox, a model that answers its calls, and a loop whose clock runs only when everything waits."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wsap_core.seams.model import Reply, Request
from wsap_sandbox.model import Character, Place, TickRecord, World, WorldObject
from wsap_sandbox.tick import Settings
from wsap_sandbox.tick.engine import Engine, Story
from wsap_sandbox.tick.facts import Facts, IntentFacts, MemoryFacts, SceneFacts, StoryFacts

T = TypeVar("T")
Data = dict[str, Any]


def mill() -> World:
    """Three people, three places in a row, two objects; Anna and Boris are at the mill."""
    return World(
        title="The mill",
        language="en",
        premise="Flour is short, and the winter is long.",
        places=(
            Place("mill", "the mill", "A mill with one wheel.", "Rain.", ("yard",), ("sack",)),
            Place("yard", "the yard", "A yard of beaten earth.", "", ("mill", "road")),
            Place("road", "the road", "A road that leads out.", "", ("yard",)),
        ),
        characters=(
            Character(
                "anna",
                "Anna",
                "A tall woman in a grey coat.",
                "Proud and quick, she has never forgiven her brother.",
                "mill",
                ("When somebody lies to me, I leave.", "I always share bread."),
                "I hid the key under the third stone.",
                "Uneasy because the ledger does not add up.",
                "To find out who takes the flour at night.",
                ("key",),
            ),
            Character(
                "boris",
                "Boris",
                "A broad man with floury hands.",
                "A coward who wants to be loved by everybody.",
                "mill",
                ("In danger, I hide first.",),
                "I sold nine sacks to the garrison.",
                "Afraid that somebody has counted the sacks.",
                "To keep Anna away from the cellar door.",
            ),
            Character("vera", "Vera", "A girl with a dog.", "Curious, and never afraid of anything at all.", "road"),
        ),
        objects=(WorldObject("sack", "a sack of flour"), WorldObject("key", "a small key")),
        cells=2,
        seed=7,
    )


def ring(people: int, places: int, *, cells: int = 5) -> World:
    """Places in a circle, people spread over them, an object for each place."""
    return World(
        title="A ring",
        language="en",
        places=tuple(
            Place(f"p{i}", f"place {i}", f"The place number {i}.", "", (f"p{(i + 1) % places}",), (f"o{i}",))
            for i in range(places)
        ),
        characters=tuple(
            Character(f"c{i}", f"Person {i}", f"Person {i}, in a coat.", f"The nature of {i}.", f"p{i % places}")
            for i in range(people)
        ),
        objects=tuple(WorldObject(f"o{i}", f"thing {i}") for i in range(places)),
        cells=cells,
    )


def doing(name: str, **given: object) -> Data:
    """What a game master says of a character to whom nothing much happens."""
    return {
        "order": 1,
        "event": f"{name} looks around.",
        "outcome": "success",
        "triggers": [],
        "unnoticed_by": [],
        "to": "stay",
        "state": "",
        "goal": "",
        "tried": "I looked around.",
        "came_of_it": "I saw what there is.",
        "interpretation": "It is a day like others.",
        **given,
    }


def scene(facts: SceneFacts, **given: Data) -> Data:
    """A scene in which nothing much happens, but what is given for characters by their ids."""
    return {
        "characters": {one.person.id: doing(one.person.name, **given.get(one.person.id, {})) for one in facts.actors},
        "objects": [],
        "happenings": [],
        "place": {"moment": "A quiet hour.", "description": "", "cause": "none"},
    }


def plain(facts: Facts) -> Data:
    """A sound answer to any facts."""
    match facts:
        case IntentFacts():
            return {"intention": f"I look around, says {facts.me.name}."}
        case SceneFacts():
            return scene(facts)
        case StoryFacts():
            return {"story": f"Nothing much happened in {facts.place.name}."}
        case MemoryFacts():
            return {"summary": f"I remember {len(facts.summary)} letters and tick {facts.cells[-1].tick}."}


@dataclass
class Model:
    """Answers calls and remembers them."""

    answer: Callable[[str, Facts], object] = lambda _key, facts: plain(facts)
    """The answer's data, or its text, for a call's key and facts."""
    latency: Callable[[str], float] = lambda _key: 0.0
    """Seconds for a call's key."""
    requests: dict[str, Request] = field(default_factory=dict)
    """By key, in the order asked."""
    facts: dict[str, Facts] = field(default_factory=dict)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    """When each call began and ended, by the loop's clock."""
    at_once: int = 0
    most_at_once: int = 0

    async def __call__(self, key: str, facts: Facts, request: Request) -> Reply:
        assert key not in self.requests, f"{key} is asked twice"
        self.requests[key] = request
        self.facts[key] = facts
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        began = asyncio.get_running_loop().time()
        try:
            await asyncio.sleep(self.latency(key))
        finally:
            self.at_once -= 1
        self.spans[key] = (began, asyncio.get_running_loop().time())
        answer = self.answer(key, facts)
        return Reply(answer if isinstance(answer, str) else json.dumps(answer))


@dataclass
class Played:
    """What ticks came to."""

    world: World
    records: list[TickRecord]
    stories: list[Story]
    model: Model


async def advanced(
    world: World, model: Model, ticks: int = 1, settings: Settings | None = None, seats: Mapping[str, str] | None = None
) -> Played:
    """Carry out ticks with a model; `seats` gives intentions for each of them."""
    stories: list[Story] = []
    engine = Engine(model, stories.append, settings)
    records = []

    async def said(text: str) -> str:
        return text

    for _ in range(ticks):
        world, record = await engine.advance(world, {one: said(text) for one, text in (seats or {}).items()})
        records.append(record)
    await engine.settle()
    return Played(world, records, stories, model)


def played(
    world: World,
    answer: Callable[[str, Facts], object] | None = None,
    ticks: int = 1,
    settings: Settings | None = None,
    seats: Mapping[str, str] | None = None,
) -> Played:
    """Carry out ticks with a model that answers so."""
    model = Model() if answer is None else Model(answer)
    return on_virtual_clock(advanced(world, model, ticks, settings, seats))[0]


class _Selector(selectors.SelectSelector):
    """Lets time pass instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


def on_virtual_clock(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Return what a coroutine returns and how many seconds of sleep it was long; nothing really sleeps."""
    selector = _Selector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    loop.slow_callback_duration = 1e9
    try:
        return loop.run_until_complete(work), selector.now
    finally:
        loop.close()
