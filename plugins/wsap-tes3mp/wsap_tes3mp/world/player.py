"""One agent in `morrowind`: its body, what it perceives, and its commands."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from typing import Annotated

from pydantic import Field, TypeAdapter

from wsap_core.authoring.body import Body, Session
from wsap_core.authoring.item_ledger import ItemLedger
from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Avatar, AvatarState, Event, Observation, View
from wsap_core.protocol.spatial import entity_line
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.views import TimelineBlock, TimelineEntry
from wsap_core.seams.game import ChoiceKey
from wsap_core.untrusted import sanitize
from wsap_core.worlds.legality import check_action, index_actions
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.protocol import errors
from wsap_tes3mp.protocol.bridge import JoinRequest
from wsap_tes3mp.protocol.commands import FINAL, UNHINDERED, CommandContext, CommandInput
from wsap_tes3mp.protocol.perception import PerceptionOutput
from wsap_tes3mp.world.actions import ACTION_SPACE, command_of, command_params, refusal
from wsap_tes3mp.world.catalogue import GAME_ID, TERMS, TRANSFER_RULES
from wsap_tes3mp.world.feats import Memory
from wsap_tes3mp.world.observation import MorrowindObservation, observation_of, picture
from wsap_tes3mp.world.source import Source

STALE_SECONDS = 10.0
"""Age from which a perception is reported as stale."""
POLL_SECONDS = 0.1
_DECLARED = index_actions(ACTION_SPACE)
_EPISODE = TypeAdapter(tuple[Annotated[int, Field(strict=True, ge=0)], str, str, str | None])
_ASLEEP = "Nobody is in the body; jack in first."

DESCRIPTION = resources.files(__package__).joinpath("description.txt").read_text("utf-8").strip()
"""The description of the world for models."""


class Player:
    """One agent's seat in the world."""

    def __init__(self, source: Source, agent_id: str, number: int) -> None:
        self.source = source
        self.agent_id = agent_id
        self.bridge_id = agent_id
        """The agent's id on the bridge."""
        self.former: tuple[str, ...] = ()
        """Ids of its earlier bodies."""
        self.terms: dict[str, str] = {}
        """The terms of its entry that are not the usual ones: `spawn`, `loadout`, `difficulty`."""
        self.items = ItemLedger()
        self.emptied = False
        """Whether its own items were exported since the agent last jacked in."""
        self.begin(Body(number=number, owner=agent_id, name=agent_id))

    def begin(self, body: Body) -> None:
        """Start an episode in a body."""
        self.body = body
        self.session, self.memory, self.gifts = Session(), Memory(), Counter[str]()
        self.steps, self.over = 0, ""
        self.death: tuple[str, str | None] = ("", None)
        self.seen: PerceptionOutput | None = None
        self.events: tuple[Event, ...] = ()
        self._since = 0.0

    @property
    def away(self) -> bool:
        """Whether no agent is in the body."""
        return self.body.state not in (AvatarState.UNBOUND, AvatarState.BOUND)

    # --- coming and going -------------------------------------------------------------------------

    async def wake(self, *, new: bool = False) -> None:
        """Enter the world, with a `new` body by the terms of the entry, and perceive."""
        await self._join()
        if new and self.terms and self.source.engine is not None:
            self.source.engine.settle(self.bridge_id, **self.terms)
        await self.look()

    async def _join(self) -> None:
        agent = self.source.options.agent
        if self.source.options.live:
            who = self.source.identity_of(self.agent_id)
            name = self.body.name if who == self.agent_id else who
            request = JoinRequest(agent_id=agent or who, name=agent or name or None)
        else:  # the world is the run's own, where its seats are enough
            request = JoinRequest(agent_id=self.agent_id, name=self.body.name or None)
        try:
            self.bridge_id = (await self.source.port.join(request)).agent_id
        except (errors.NotOfferedError, errors.BridgeUnavailableError):
            # The engine makes no bodies, or only for connected players.
            self.bridge_id = agent or await self._there_is()

    async def _there_is(self) -> str:
        try:
            ids = [one.agent_id for one in await self.source.port.agents()]
        except errors.NotOfferedError:
            return (await self.source.port.perception(None)).agent_id
        for wanted in (self.source.identity_of(self.agent_id), self.agent_id):
            if wanted in ids:
                return wanted
        if len(ids) == 1:
            return ids[0]
        shown = ", ".join(ids[:10]) or "none"
        raise UsageError(f"Choose the agent to play with --option agent=ID; the bridge has: {shown}.")

    async def leave(self, mode: str) -> None:
        """Put the body to sleep, hide it, or delete it, if the engine can."""
        with contextlib.suppress(errors.NotOfferedError):
            await self.source.port.leave(self.bridge_id, mode)

    async def revive(self) -> None:
        """Come back to life, and perceive."""
        await self.source.port.respawn(self.bridge_id)
        await self.look()

    # --- perceiving -------------------------------------------------------------------------------

    async def look(self) -> PerceptionOutput:
        """Return the current perception; in a live world that can't be reached, the last one."""
        try:
            seen = await self.source.port.perception(self.bridge_id)
        except (errors.BridgeUnavailableError, errors.PayloadError, errors.PerceptionTimeoutError) as error:
            if self.seen is None or not self.source.options.live:
                raise
            if await self._is_forgotten(self.seen.boot_id):
                await self._join()
                seen = await self.source.port.perception(self.bridge_id)
            elif isinstance(error, errors.PayloadError):
                raise
            else:
                seen = self.seen
        if self.seen is None:
            self.memory.begin(seen)
        if self.seen is None or seen.timestamp != self.seen.timestamp or seen.boot_id != self.seen.boot_id:
            self._since = self.source.clock.now()
        self.seen = seen
        return seen

    async def _is_forgotten(self, boot: str | None) -> bool:
        """Whether the bridge or its engine was started again since a boot, and knows nothing of the agent."""
        try:
            status = await self.source.port.status()
        except errors.BridgeError:
            return False
        return status.boot_id not in (None, boot) and self.bridge_id not in (status.agents or ())

    async def observe(self) -> Observation:
        """Return the current perception as an observation; the last one if no agent is in the body."""
        if not self.away or self.seen is None:
            await self.look()
        return self.observation()

    def observation(self) -> MorrowindObservation:
        """Return the last perception as an observation."""
        if self.seen is None:
            raise UsageError(f"{self.agent_id!r} has no perception yet.")
        age = self.source.clock.now() - self._since if self.source.options.live else 0.0
        return observation_of(
            self.seen,
            self.avatar(),
            step=self.steps,
            events=self.events,
            stale_seconds=round(age, 1) if age >= STALE_SECONDS else 0.0,
            over=self.over or (_ASLEEP if self.away else ""),
        )

    def avatar(self) -> Avatar:
        """Return the body."""
        seen = self.seen
        if seen is None:
            return self.body.avatar(GAME_ID, self.steps)
        return self.body.avatar(
            GAME_ID,
            self.steps,
            position=(seen.location.x, seen.location.y, seen.location.z),
            health=seen.health.current,
            max_health=seen.health.max,
            inventory={item.item_id: item.count for item in seen.inventory or ()},
            equipment={item.item_id: item.name for item in seen.inventory or () if item.equipped},
        )

    def render(self) -> View:
        """Return a drawing of the perception, the known places, and the story so far."""
        if self.seen is None:
            return View((), "Morrowind")
        drawn = picture(self.seen, self.memory.ways)
        entries = [TimelineEntry(text, max(1, step)) for step, text in self.memory.story[-20:]]
        return replace(drawn, blocks=(*drawn.blocks, TimelineBlock(entries, "So far"))) if entries else drawn

    # --- acting -----------------------------------------------------------------------------------

    async def act(self, action: Action, key: ChoiceKey | None = None) -> ActionResult:
        """Send an action as a command, in a live world at most once per key, and return its result."""
        async with self.source.turn:
            return await self._carry_out(action, key)

    async def _carry_out(self, action: Action, key: ChoiceKey | None) -> ActionResult:
        before = self.seen or await self.look()
        if self.over:
            return self._say(f"The episode is over: {self.over}.")
        if self.away:
            return self._say(_ASLEEP)
        if action.name in ("look", "emote"):
            return self._gesture(action)
        action, why = check_action(action, _DECLARED)
        if why := why or refusal(action, before):
            return self._say(f"That does not work: {why}.".replace("..", "."))
        tool = action.name in UNHINDERED and action.name != "noop"
        self.steps += 0 if tool else 1
        sent = await self._send(self.command(action, before), key)
        if tool:
            return self._result(sent, 0.0, ())
        least = (sent.sequence or 0) if self.source.options.live else 0
        after = await self._until(2.0, lambda seen: seen.sequence is None or seen.sequence >= least)
        reward, names, events = self.memory.take_in(before, after, action.name, self.steps)
        said = sanitize(sent.message, 300)
        self.events = tuple(events)
        self._look_at_end(before, after)
        result = self._result(replace(sent, message=said or "Done."), reward, names)
        self.session.add(result)
        return result

    def _result(self, sent: Done, reward: float, names: Sequence[str]) -> ActionResult:
        outcome = "done" if sent.state == "confirmed" else sent.state
        told, over = self.observation(), bool(self.over)
        return ActionResult(outcome == "done", sent.message, reward, names, over, told, outcome=outcome)

    def _look_at_end(self, before: PerceptionOutput, after: PerceptionOutput) -> None:
        options = self.source.options
        if after.health.current == 0:
            foes = [one.name for one in before.nearby_entities if one.entity_type == "creature"]
            fighting = before.environment.is_combat or after.environment.is_combat
            self.death = ("combat", foes[0] if foes else None) if fighting else ("injury", None)
            self.over = "you are dead"
            self.items.lose_all(self.body.avatar_id, "lost when the avatar died")
            self.body = replace(self.body, state=AvatarState.DESTROYED, deaths=self.body.deaths + 1)
        elif options.quests and len(self.memory.done) >= options.quests:
            self.over = f"{options.quests} quests are completed"
        elif options.length and self.steps >= options.length:
            self.over = f"{options.length} commands were given"

    def command(self, action: Action, seen: PerceptionOutput) -> CommandInput:
        """Return an action as a command based on a perception."""
        return CommandInput(
            timestamp=self.source.now() if self.source.options.live else seen.timestamp,
            agent_id=self.bridge_id,
            command=command_of(action.name),
            params=command_params(action, seen),
            reasoning=(action.reasoning or "")[:20_000],
            episode_id=self.source.episode_of(self.agent_id)[:200],
            context=CommandContext(
                perception_timestamp=seen.timestamp, heartbeat_cycle=self.steps, perception_sequence=seen.sequence
            ),
        )

    async def _send(self, command: CommandInput, key: ChoiceKey | None) -> Done:
        port = self.source.port
        try:
            if key is not None and key.again and (await port.status()).abilities is None:
                return Done("unknown", "The run was interrupted here; the command may have been accepted.")
            name = None if key is None else hashlib.sha256(key.text.encode()).hexdigest()[:40]
            command_id = (await port.command(command, key=name)).command_id
        except errors.KeyReusedError as error:
            # The run was interrupted after the command was accepted: return that command's outcome.
            command_id = str(error.details.get("command_id", ""))
        except errors.UnknownOutcomeError as error:
            return Done("unknown", str(error))
        except errors.BridgeError as error:
            return Done("failed", str(error))
        patience = self.source.options.patience
        try:
            outcome = await port.outcome(command_id, wait=patience)
        except errors.NotOfferedError:
            before = self.seen  # such a bridge only shows a changed timestamp
            await self._until(patience, lambda seen: before is None or seen.timestamp != before.timestamp)
            return Done("confirmed", "The command was accepted.")
        except errors.BridgeError as error:
            return Done("unknown", f"The outcome is unknown: {error}")
        state = outcome.state if outcome.state in ("confirmed", "failed") else "unknown"
        message = outcome.message if outcome.state in FINAL else "The outcome is not known yet."
        return Done(state, message, sequence=outcome.sequence)

    async def _until(self, seconds: float, wanted: Callable[[PerceptionOutput], bool]) -> PerceptionOutput:
        """Return the first wanted perception, or the last one before the time is up."""
        end = self.source.clock.now() + seconds
        while not wanted(seen := await self.look()) and self.source.clock.now() < end:
            await self.source.clock.sleep(POLL_SECONDS)
        return seen

    def _gesture(self, action: Action) -> ActionResult:
        if action.name == "emote":
            return self._say("This body has no gestures.")
        target, seen = str(action.parameters.get("target") or ""), self.observation().nearby_entities
        lines = [entity_line(one) for one in seen if target in entity_line(one)]
        return self._say("; ".join(lines) or f"There is nothing of note ({sanitize(target, 60)}).", success=True)

    def _say(self, message: str, *, success: bool = False) -> ActionResult:
        return ActionResult(success, message, done=bool(self.over), observation=self.observation())

    # --- as data ----------------------------------------------------------------------------------

    def to_json(self) -> JsonValue:
        """Return the state as JSON-ready data."""
        return {
            "body": self.body.to_json(),
            "former": list(self.former),
            **({"terms": dict(self.terms)} if self.terms else {}),
            "items": self.items.to_json(),
            "gifts": [dict(self.gifts), self.emptied],
            "session": self.session.to_json(),
            "memory": self.memory.to_json(),
            "episode": [self.steps, self.over, *self.death],
            "events": [[event.description, event.type, event.step] for event in self.events],
            "seen": None if self.seen is None else self.seen.model_dump(mode="json"),
        }

    def load_json(self, data: JsonValue) -> None:
        """Restore the state of `to_json`; raises one of `WRONG_DATA` if the data is invalid."""
        self.begin(Body.from_json(data["body"]))
        self.former = tuple(str(one) for one in data["former"])
        self.terms = {name: str(data["terms"][name]) for name in TERMS if name in data.get("terms", {})}
        self.items.load_json(data["items"], {rule.id for rule in TRANSFER_RULES})
        gifts, self.emptied = data["gifts"][0], data["gifts"][1] is True
        self.gifts = Counter({str(name): int(count) for name, count in gifts.items()})
        self.session, self.memory = Session.from_json(data["session"]), Memory.from_json(data["memory"])
        self.steps, self.over, cause, killer = _EPISODE.validate_python(data["episode"])
        self.death = (cause, killer)
        self.events = tuple(Event(str(text), str(kind), None, step) for text, kind, step in data["events"])
        self.seen = None if data["seen"] is None else PerceptionOutput.model_validate(data["seen"])


class Seat:
    """The world for one of several agents."""

    action_space: ActionSpace = ACTION_SPACE
    game_description = DESCRIPTION

    def __init__(self, player: Callable[[], Player]) -> None:
        self._player = player

    async def observe(self) -> Observation:
        """Return the agent's observation."""
        return await self._player().observe()

    async def act(self, action: Action) -> ActionResult:
        """Carry out an action after those before it."""
        return await self._player().act(action)

    def default_action(self) -> Action:
        """Return the action taken when the agent is late."""
        return Action("noop")

    def render(self) -> View:
        """Return a drawing of the agent's perception."""
        return self._player().render()

    def reset(self) -> Observation:
        """Raise `UsageError`: one agent can't reset a shared world."""
        raise UsageError("One seat can't reset a shared world; reset the world.")
