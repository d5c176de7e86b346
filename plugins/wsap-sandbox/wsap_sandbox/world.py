"""The sandbox as a game: a world that lives, takes influences, and has its characters as seats."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from wsap_core.authoring.packing import WRONG_DATA, pack, unpack
from wsap_core.errors import RecordMismatchError, SnapshotError, UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation, Tick, View
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context
from wsap_core.seams.model import Backend, JsonConstraint, Reply, Request
from wsap_core.seams.services import WorldModels
from wsap_core.untrusted import sanitize
from wsap_sandbox.languages import Words, words_of
from wsap_sandbox.model import Character, TickRecord, World, dump, load
from wsap_sandbox.options import STORYTELLER, SandboxOptions
from wsap_sandbox.seat import CharacterSeat, space_of
from wsap_sandbox.story.chapters import tick_body
from wsap_sandbox.story.views import world_view
from wsap_sandbox.templates.loader import places_drawn
from wsap_sandbox.tick.engine import Engine, Story
from wsap_sandbox.tick.facts import Facts
from wsap_sandbox.tick.influence import influenced, with_character
from wsap_sandbox.tick.prompts import fitting
from wsap_sandbox.tick.replies import alarming, unusable

STORY = "story"
"""The kind of the log note that holds the story of one place in one tick."""
_HEADER = b"WSAP sandbox 1\n"
_LARGEST = 64_000_000
_SUMMARY = 160


class Sandbox:
    """A world that tells itself; without the service `models` only the storyteller is available."""

    def __init__(self, options: SandboxOptions, context: Context) -> None:
        self._options = options
        self._seed = context.seed
        self._services = context.services
        self._backends: dict[str, Backend] = {}
        self._opening = asyncio.Lock()
        self._seats: dict[str, CharacterSeat] = {}
        """By agent id."""
        self._ticking: asyncio.Task[Any] | None = None
        """Runs the current tick; None between two ticks."""
        self._again = False
        """Whether the current tick is to be restarted."""
        self._begin(options.begin(self._seed))
        self._drawn = {} if options.world is not None else places_drawn(options.template, options.language)
        """The places of the template, as they are drawn on the map."""

    def _begin(
        self,
        world: World,
        record: TickRecord | None = None,
        earned: dict[str, list[str]] | None = None,
        *,
        told: bool = False,
    ) -> None:
        self.state: World = world
        """The world between two ticks."""
        self.record: TickRecord | None = record
        """The last tick; None before the first."""
        self._earned: dict[str, list[str]] = earned or {}
        self._engine = Engine(self._ask, self._tell, self._options)
        # A story interrupted by the save is told again; its notes are recorded only once.
        self._untold: TickRecord | None = record if self._options.overlap and not told else None
        self._restart()
        for seat in self._seats.values():
            seat.give_up()

    # --- the game --------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """The world's title."""
        return self.state.title

    @property
    def game_description(self) -> str:
        """The world and what is at stake."""
        return f"{self.state.title}. {self.state.premise}".strip()

    @property
    def action_space(self) -> ActionSpace:
        """The actions of a character."""
        return space_of(self.state.language)

    def observe(self) -> Observation:
        """Raise UsageError: the world has several seats."""
        raise self._several("observe")

    def act(self, action: Action) -> ActionResult:
        """Raise UsageError: the world has several seats."""
        raise self._several("act")

    def reset(self, seed: int | None = None) -> Observation:
        """Restart the world, with the previous seed by default, and return an outside observer's observation."""
        self._seed = self._seed if seed is None else seed
        self._begin(self._options.begin(self._seed))
        return Observation(step=self.state.tick, language=self.state.language)

    # --- ticks -----------------------------------------------------------------------------------

    async def advance(self) -> Tick:
        """Run the next tick, waiting for the agents in seats.

        The tick takes effect in the same turn of the event loop in which this returns, so whatever happens before
        restarts it, and whatever happens afterwards finds it over.
        """
        # In a task of its own the tick would take effect a turn before its caller could record it.
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        outside = task.cancelling()
        while True:
            self._again, self._ticking = False, task
            try:
                return await self._tick()
            except asyncio.CancelledError:
                if not self._again:
                    raise
            finally:
                self._ticking = None
                cancelled = task.uncancel() if self._again else outside
            if cancelled > outside:  # by the caller, too
                raise asyncio.CancelledError

    async def _tick(self) -> Tick:
        seats = {seat.character: asyncio.ensure_future(seat.intention()) for seat in self._seats.values()}
        try:
            if self._untold is not None:
                await self._engine.retell(self.state, self._untold)
                self._untold = None
            world, record = await self._engine.advance(self.state, seats)
        finally:
            for waiting in seats.values():
                waiting.cancel()
        before, self.state, self.record = self.state, world, record
        for seat in self._seats.values():
            seat.live_through(before, record, self._earned.setdefault(seat.character, []))
        return Tick(record.tick, tick_body(world, record), _summary(record, words_of(world.language)))

    async def settle(self) -> None:
        """Wait until the story of the last tick is told."""
        with suppress(RecordMismatchError):  # a run that is only read may lack it
            await self._engine.settle()

    def influence(self, body: Mapping[str, JsonValue]) -> str:
        """Apply an influence (see `tick.influence.KINDS`) before the next tick. Raises UsageError if it is invalid."""
        self.state, said = influenced(self.state, body)
        return said

    # --- seats -----------------------------------------------------------------------------------

    def seat(self, agent_id: str) -> CharacterSeat:
        """Return the seat of the character with that id or name; any other name arrives as a newcomer.

        Raises UsageError if the seat is taken.
        """
        name = sanitize(agent_id, 60)
        known = (one.id for one in self.state.characters if agent_id == one.id or name == one.name)
        character = next(known, None) or self._arrived(name)
        if any(seat.character == character and agent != agent_id for agent, seat in self._seats.items()):
            raise UsageError(f"The seat {character!r} is already taken.")
        self._seats[agent_id] = CharacterSeat(character, lambda: (self.state, self.record))
        self._restart()
        return self._seats[agent_id]

    def leave(self, agent_id: str) -> None:
        """Release the agent's seat; the model decides for the character again."""
        seat = self._seats.pop(agent_id, None)
        if seat is not None:
            self._restart()
            seat.give_up()

    def _arrived(self, name: str) -> str:
        digit = re.match(r"[^a-z0-9]*[0-9]", name.casefold())  # ids don't start with a digit
        character_id = self.state.free_id(f"newcomer {name}" if digit else name, "newcomer")
        appearance = words_of(self.state.language).seat["newcomer"]
        newcomer = Character(character_id, name or character_id, appearance, "", self.state.places[0].id)
        self.state = with_character(self.state, newcomer)
        return character_id

    def _several(self, what: str) -> UsageError:
        one = next((f"seat({one.id!r}) and so on" for one in self.state.characters), "a seat")
        return UsageError(f"This world has several seats; {what} through {one}.")

    # --- view and snapshot -------------------------------------------------------------------------

    def render(self) -> View:
        """Return the map with all characters, and what is visible in each place."""
        return world_view(self.state, () if self.record is None else self.record.events, self._drawn)

    def snapshot(self) -> bytes:
        """Return the state between ticks; agents state the intentions of an unfinished tick again."""
        record = None if self.record is None else dump(self.record)
        told = self._untold is None and not self._engine.is_telling
        return pack(_HEADER, {"world": dump(self.state), "record": record, "earned": self._earned, "told": told})

    def restore(self, data: bytes) -> None:
        """Restore a snapshot. Raises SnapshotError, leaving the state unchanged, if its data or version is invalid."""
        kept = unpack(_HEADER, data, "the sandbox", _LARGEST)
        try:
            world = load(kept["world"], World)
            record = None if kept["record"] is None else load(kept["record"], TickRecord)
            earned = {str(one): [str(name) for name in names] for one, names in kept["earned"].items()}
            ids = {one.id for one in world.characters}
            if not all(seat.character in ids for seat in self._seats.values()):
                raise SnapshotError("The snapshot lacks a character whose seat is taken.")
        except WRONG_DATA as error:
            raise SnapshotError(f"The sandbox snapshot is damaged: {error}.") from error
        self._begin(world, record, earned, told=bool(kept.get("told")))

    def _restart(self) -> None:
        """Restart the current tick, because the world has changed."""
        if self._ticking is not None and not self._again:
            self._again = True
            self._ticking.cancel()

    # --- models ------------------------------------------------------------------------------------

    async def _ask(self, key: str, facts: Facts, request: Request) -> Reply:
        phase = request.purpose
        async with self._opening:
            if phase not in self._backends:
                models = cast(WorldModels | None, self._services.models)
                self._backends[phase] = await _opened(models, self._options, phase)
        backend = self._backends[phase]
        return await _asked(backend, fitting(request, facts, backend.abilities.context))

    def _tell(self, story: Story) -> None:
        if self._services.log is not None:
            degraded = [{"kind": one.kind, "subject": one.subject} for one in story.degraded]
            body = {"tick": story.tick, "place": story.place, "text": story.text, "degraded": degraded,
                    "reasked": story.reasked}  # fmt: skip
            self._services.log.note(STORY, body)


def _summary(record: TickRecord, words: Words) -> str:
    texts = [event.text for event in record.acts() or record.events]
    alarm = [words.say("alarm", unusable=unusable(record), calls=record.calls)] if alarming(record) else []
    text = " ".join((*alarm, *texts))
    return text if len(text) <= _SUMMARY else text[: _SUMMARY - 3].rstrip() + "..."


def create(context: Context) -> Sandbox:
    """Return a sandbox with the context's options (`SandboxOptions`). Raises ConfigError if an option is invalid."""
    return Sandbox(SandboxOptions.read(context.config), context)


async def _opened(models: WorldModels | None, options: SandboxOptions, phase: str) -> Backend:
    """Return the model of a phase. Raises UsageError without a model service; WsapError if it is unavailable."""
    address = options.models[phase]
    if address not in options.asked:
        # The storyteller uses the material in a user's template.
        own = options.template if options.template.endswith(".toml") and options.world is None else "default"
        name = address.removeprefix(STORYTELLER).removeprefix("/") or own
        if models is not None:
            return await models.open(f"{STORYTELLER}/{name}")
        from wsap_sandbox.storyteller.backend import create  # deferred for weight

        return create(Context(config={"model": name}))
    if models is None:
        raise UsageError(f"The model {address} is not available here; run the world with wsap sandbox run.")
    return await models.open(address, options.own)


async def _asked(backend: Backend, request: Request) -> Reply:
    """Return the reply to a request, adapted to what the model supports."""
    can, constraint = backend.abilities, request.constraint
    if not backend.model.startswith(f"{STORYTELLER}/"):
        if isinstance(constraint, JsonConstraint) and can.schema_subset:
            from wsap_llm.kit import strict_schema  # deferred for weight

            constraint = replace(constraint, schema=strict_schema(constraint.schema))
        request = replace(request, constraint=constraint if can.json_schema else None, options={})
    return await backend.complete(request)
