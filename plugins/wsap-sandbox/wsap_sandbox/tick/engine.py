"""Runs ticks, starting each model call as soon as its inputs are known.

An intention needs its character's state and memory; a scene needs the intentions of those present; a story needs its
scene; a summary needs the old summary and the cells to be dropped, both known before the tick. There are no other
dependencies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

from wsap_core.seams.model import Reply, Request
from wsap_core.untrusted import sanitize
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import Cell, Character, Degraded, Place, TickRecord, World, after, falling
from wsap_sandbox.tick import Settings
from wsap_sandbox.tick import facts as known
from wsap_sandbox.tick.facts import PHASES, Facts, StoryFacts
from wsap_sandbox.tick.prompts import request_for
from wsap_sandbox.tick.replies import REASKED, Reading, read
from wsap_sandbox.tick.scene import Decision, Resolution, Scene

R = TypeVar("R")

Ask = Callable[[str, Facts, Request], Awaitable[Reply]]
"""Sends a request to a model, given the call's key, the facts in its prompt, and the request."""

MOST_SUMMED_UP = 3
"""Maximum cells covered by one summary; the rest wait for the next."""


@dataclass(frozen=True, slots=True)
class Story:
    """The story of one place's scene in one tick."""

    tick: int
    place: str
    text: str
    degraded: tuple[Degraded, ...] = ()
    reasked: int = 0
    """1 if the call was repeated."""


class Engine:
    """Runs the ticks of a world, one after another.

    An exception from `ask` cancels the tick. `tell` receives the stories of a tick after it is complete, in the order
    of places.
    """

    def __init__(self, ask: Ask, tell: Callable[[Story], None], settings: Settings | None = None) -> None:
        self._ask, self._tell, self._settings = ask, tell, settings or Settings()
        self._gate = asyncio.Semaphore(self._settings.concurrency)
        self._telling: asyncio.Task[None] | None = None

    async def advance(
        self, world: World, seats: Mapping[str, Awaitable[str]] | None = None
    ) -> tuple[World, TickRecord]:
        """Run the next tick and return the world after it, with the tick's record.

        `seats` are the intentions of the characters whose seats are taken. With `Settings.overlap` the stories are
        told later (see `settle`), otherwise before this returns.
        """
        tick = _Tick(self._ask, self._gate, self._settings, world, seats or {})
        try:
            record = await tick.record()
            await self.settle()  # the stories of the previous tick
            if not self._settings.overlap:
                await self._tell_all(tick.stories)
        except BaseException:
            await _cancel([*tick.tasks, *tick.stories])
            raise
        if self._settings.overlap:
            self._telling = asyncio.create_task(self._tell_all(tick.stories))
        return after(world, record), record

    @property
    def is_telling(self) -> bool:
        """Whether stories may still be untold."""
        one = self._telling
        return one is not None and not (one.done() and not one.cancelled() and one.exception() is None)

    async def settle(self) -> None:
        """Wait until every story has been told; cancelling the wait does not cancel the telling."""
        if self._telling is not None:
            await asyncio.shield(self._telling)
            self._telling = None

    async def retell(self, world: World, record: TickRecord) -> None:
        """Tell the stories of the last tick again, with the same call keys."""
        tick = _Tick(self._ask, self._gate, self._settings, world, {})
        await self._tell_all([asyncio.create_task(tick.story(one)) for one in known.stories_of(world, record)])

    async def _tell_all(self, stories: list[asyncio.Task[Story]]) -> None:
        try:
            for story in await asyncio.gather(*stories):
                self._tell(story)
        except BaseException:
            await _cancel(stories)
            raise


@dataclass
class _Tick:
    ask: Ask
    gate: asyncio.Semaphore
    settings: Settings
    world: World
    seats: Mapping[str, Awaitable[str]]
    stories: list[asyncio.Task[Story]] = field(default_factory=list)
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    """All tasks but the stories."""
    readings: dict[str, tuple[Reading, int]] = field(default_factory=dict)
    """`PHASE/SUBJECT` -> the reply and how often the call was repeated; without stories."""

    async def _reading(self, facts: Facts, subject: str) -> tuple[Reading, int]:
        """The reply, and how often the call was repeated because the first reply was unusable."""
        first = await self._asked(facts, subject, 0, "")
        worst = next((one.kind for one in first.degraded if one.kind in REASKED), "")
        if not worst:
            return first, 0
        second = await self._asked(facts, subject, 1, worst)
        return (second if second.worst <= first.worst else first), 1

    async def story(self, facts: StoryFacts) -> Story:
        """Return the story of a scene."""
        reading, reasked = await self._reading(facts, facts.place.id)
        # Without the narrator, the ledger tells.
        text = reading.text or " ".join(event.text for event in facts.events)
        text = text or words_of(facts.language).say("quiet", place=facts.place.name)
        return Story(facts.tick, facts.place.id, text, reading.degraded, reasked)

    async def _asked(self, facts: Facts, subject: str, attempt: int, problem: str) -> Reading:
        request = request_for(self.world, facts, subject, self.settings, attempt=attempt, problem=problem)
        async with self.gate:
            reply = await self.ask(request.key, facts, request)
        return read(reply.text, facts, subject, text=self.settings.text)

    async def record(self) -> TickRecord:
        """Return the tick's record once everything but the stories is complete."""
        world = self.world
        intents = {one.id: self._begun(self._intent(one)) for one in world.characters}
        summaries = {
            one.id: self._begun(self._summary(one, cells))
            for one in world.characters
            if (cells := falling(world.cells, one)[:MOST_SUMMED_UP])
        }
        resolved = [self._begun(self._scene(place, intents)) for place in world.places]
        self.stories = [asyncio.create_task(self._told(scene)) for scene in resolved]
        await asyncio.gather(*self.tasks)
        scenes = [scene.result() for scene in resolved]
        changes = {change.id: change for scene in scenes for change in scene.characters}
        for one, (summary, summed_up) in ((one, task.result()) for one, task in summaries.items()):
            if summed_up:
                changes[one] = replace(changes[one], summary=summary, summed_up=summed_up)
        readings = [self.readings[key] for key in sorted(self.readings)]
        degraded = [*(reading.degraded for reading, _ in readings), *(scene.degraded for scene in scenes)]
        return TickRecord(
            tick=world.tick + 1,
            events=tuple(chain.from_iterable(scene.events for scene in scenes)),
            characters=tuple(changes[one.id] for one in world.characters),
            places=tuple(scene.place for scene in scenes),
            conditions=tuple(chain.from_iterable(scene.conditions for scene in scenes)),
            degraded=tuple(chain.from_iterable(degraded)),
            calls=len(readings) + len(self.stories),
            reasked=sum(reasked for _, reasked in readings),
        )

    def _begun(self, work: Coroutine[object, object, R]) -> asyncio.Task[R]:
        task = asyncio.create_task(work)
        self.tasks.append(task)
        return task

    async def _read(self, facts: Facts, subject: str) -> Reading:
        reading = self.readings[f"{PHASES[type(facts)]}/{subject}"] = await self._reading(facts, subject)
        return reading[0]

    async def _intent(self, one: Character) -> Decision:
        hesitates = words_of(self.world.language).say("hesitates")
        if one.id in self.seats:
            return Decision(sanitize(await self.seats[one.id], self.settings.text) or hesitates, "seat")
        for influence in reversed(self.world.influences):
            if influence.kind == "take_over" and influence.character == one.id:
                return Decision(influence.text, "outside")
        reading = await self._read(known.intent_facts(self.world, one), one.id)
        return Decision(reading.text, "model") if reading.text else Decision(hesitates, "fallback")

    async def _summary(self, one: Character, cells: tuple[Cell, ...]) -> tuple[str, int]:
        """The new summary and how many cells it covers; empty and 0 if it failed."""
        reading = await self._read(known.memory_facts(self.world, one, cells), one.id)
        return reading.text, len(cells) if reading.text else 0

    async def _scene(self, place: Place, intents: Mapping[str, asyncio.Task[Decision]]) -> Scene:
        decisions = {one.id: await intents[one.id] for one in self.world.present(place.id)}
        facts = known.scene_facts(self.world, place, {one: decision.intention for one, decision in decisions.items()})
        reading = await self._read(facts, place.id)
        return Resolution(self.world, facts, decisions, reading.scene, self.settings.text).scene()

    async def _told(self, scene: asyncio.Task[Scene]) -> Story:
        return await self.story((await scene).story)


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for them, ignoring their exceptions."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
