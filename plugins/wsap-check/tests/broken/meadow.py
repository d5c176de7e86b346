"""A small world that keeps every promise: one seat, a body, chance, senses, snapshots, pictures, a score.

The broken worlds beside this file are variations of it, each with one fault.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsap_core import (
    Achievement,
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    AdapterSpec,
    Avatar,
    AvatarGameAdapter,
    AvatarSpec,
    AvatarState,
    Context,
    DeathEvent,
    EmbodiedObservation,
    Entity,
    EpisodeSummary,
    Event,
    Goal,
    GridMapBlock,
    JackInResult,
    JackOutResult,
    Location,
    Observation,
    ParamDef,
    RespawnOption,
    ScoreMetric,
    View,
    derive_seed,
)
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.worlds.legality import check_action, index_actions

SIZE = 7
LENGTH = 60
RANGE = 3.0
CONE = 180.0
STEPS = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
WORDS = ("north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest")
DEN = RespawnOption("den", "bed", "the den", None, ("lose_inventory",), "Wake up in the den.")
SPACE = ActionSpace(
    [
        *(ActionDef(word, f"Go {word}", (), ("There is no fence",), "movement") for word in STEPS),
        ActionDef("gather", "Gather the berries here", (), ("There are berries here",), "work"),
        ActionDef(
            "call", "Call out", [ParamDef("how", "loud|soft"), ParamDef("times", "1-3", optional=True)], (), "talk"
        ),
        ActionDef("wait", "Let a step pass", (), (), "wait"),
    ]
)
MODES = {"dormant": AvatarState.DORMANT, "suspend": AvatarState.SUSPENDED, "despawn": AvatarState.DESTROYED}


@dataclass(frozen=True, kw_only=True)
class MeadowObservation(EmbodiedObservation):
    """What the forager perceives, with the smell in the air."""

    smell: str = "grass"


@dataclass(frozen=True)
class Body:
    """The one body of a meadow."""

    number: int = 1
    owner: str | None = None
    state: AvatarState = AvatarState.UNBOUND
    deaths: int = 0


class Meadow(AvatarGameAdapter):
    """Gather berries in a fenced meadow, and keep clear of the wolf."""

    game_description = "You forage in a fenced meadow of 7 by 7 paces. Gather berries; beware of the wolf."
    action_space = SPACE

    def __init__(self, context: Context | None = None) -> None:
        self._seed = (context or Context()).seed
        self._episode = -1
        self._body = Body()
        self.reset()

    # --- episodes -----------------------------------------------------------------------------

    def reset(self, seed: int | None = None) -> Observation:
        if seed is None:
            self._episode += 1
        else:
            self._seed, self._episode = seed, 0
        self._random = self.generator(derive_seed(self._seed, self._episode))
        if self._body.state is AvatarState.DESTROYED:
            state = AvatarState.BOUND if self._body.owner else AvatarState.UNBOUND
            self._body = replace(self._body, state=state)
        self.begin()
        return self.observe()

    def generator(self, seed: int) -> random.Random:
        return random.Random(seed)

    def begin(self) -> None:
        self.step, self.health, self.berries = 0, 3, 0
        self.place, self.facing, self.event = (3, 3), "north", "You wake up in the grass."
        self.found: tuple[str, ...] = ()
        cells = [(x, y) for x in range(SIZE) for y in range(SIZE) if (x, y) != self.place]
        self.bushes = sorted(self._random.sample(cells, 12))
        self.wolf = self._random.choice([c for c in cells if math.dist(c, self.place) > 2])

    @property
    def done(self) -> bool:
        return self.step >= LENGTH or self.health <= 0

    # --- what is perceived ----------------------------------------------------------------------

    def observe(self) -> Observation:
        return MeadowObservation(
            status=self.status(),
            inventory={"berries": self.berries} if self.berries else {},
            location=Location(self.place, "meadow", "In the grass"),
            nearby_entities=self.entities(),
            current_goals=[Goal("berries", "Gather berries", "main", f"{self.berries} so far")],
            recent_events=[Event(self.event)],
            step=self.step,
            time_of_day="day",
            available_actions=[ActionAvailability(n, not self.against(n), self.against(n)) for n in SPACE.names],
            avatar=self.avatar(),
            facing=self.facing,
            vision_range=RANGE,
            vision_cone=CONE,
            hearing_range=0.0,
            smell="wolf" if math.dist(self.wolf, self.place) < 2 else "grass",
        )

    def status(self) -> dict[str, object]:
        return {"health": self.health, "steps left": LENGTH - self.step}

    def entities(self) -> Sequence[Entity]:
        things = [("wolf", self.wolf), *(("bush", cell) for cell in self.bushes)]
        return [self.entity(kind, cell) for kind, cell in things if self.sees(cell)]

    def sees(self, cell: tuple[int, int]) -> bool:
        distance = math.dist(cell, self.place)
        if distance > RANGE:
            return False
        turned = abs((self.bearing(cell) - 90 * list(STEPS).index(self.facing) + 180) % 360 - 180)
        return distance == 0 or turned <= CONE / 2

    def bearing(self, cell: tuple[int, int]) -> float:
        return math.degrees(math.atan2(cell[0] - self.place[0], self.place[1] - cell[1])) % 360

    def entity(self, kind: str, cell: tuple[int, int]) -> Entity:
        distance = math.dist(cell, self.place)
        word = WORDS[round(self.bearing(cell) / 45) % 8] if distance else "here"
        return Entity(kind, None, round(distance, 3), word, None, distance == 0)

    def avatar(self) -> Avatar:
        body = self._body
        agent = body.owner if body.state is AvatarState.BOUND else None
        name = body.owner or "nobody"
        return Avatar(
            f"body-{body.number}", "meadow", agent, body.state, name, self.place, {}, self.health, 3,
            {"berries": self.berries}, {}, death_count=body.deaths,
        )  # fmt: skip

    # --- what is done -----------------------------------------------------------------------------

    def against(self, name: str) -> str:
        """Return why an action is impossible now, or an empty text."""
        if self.done:
            return "the day is over"
        if name in STEPS:
            dx, dy = STEPS[name]
            inside = 0 <= self.place[0] + dx < SIZE and 0 <= self.place[1] + dy < SIZE
            return "" if inside else "the fence is in the way"
        return "there are no berries here" if name == "gather" and self.place not in self.bushes else ""

    def act(self, action: Action) -> ActionResult:
        if self.done:
            return self.refusal("The day is over.")
        if self._body.state is not AvatarState.BOUND:
            return self.refusal("Nobody is in the body.")
        action, reason = check_action(action, index_actions(self.action_space))
        if reason or (reason := self.against(action.name)):
            return self.refusal(reason)
        return self.carry_out(action)

    def refusal(self, message: str) -> ActionResult:
        return ActionResult(False, message, 0.0, (), self.done, self.observe())

    def carry_out(self, action: Action) -> ActionResult:
        reward, new = 0.0, []
        self.event = f"You {action.name}."
        if action.name in STEPS:
            dx, dy = STEPS[action.name]
            self.place, self.facing = (self.place[0] + dx, self.place[1] + dy), action.name
        elif action.name == "gather":
            self.bushes.remove(self.place)
            self.berries += 1
            reward = 1.0
            new = [n for n, enough in (("first-berry", 1), ("handful", 3)) if self.berries == enough]
        self.pass_time()
        self.found += tuple(new)
        return self.result(ActionResult(True, self.event, reward, new, self.done, self.observe()))

    def result(self, result: ActionResult) -> ActionResult:
        return result

    def pass_time(self) -> None:
        self.step += 1
        dx, dy = STEPS[self._random.choice(list(STEPS))]
        x, y = self.wolf[0] + dx, self.wolf[1] + dy
        self.wolf = (min(max(x, 0), SIZE - 1), min(max(y, 0), SIZE - 1))
        if math.dist(self.wolf, self.place) <= 1:
            self.health -= 1
            self.event = "The wolf bites you."
        if self.health <= 0:
            self._body = replace(self._body, state=AvatarState.DESTROYED, deaths=self._body.deaths + 1)

    # --- bodies -----------------------------------------------------------------------------------

    def list_avatars(self, agent_id: str) -> list[Avatar]:
        return [self.avatar()] if self._body.owner == agent_id else []

    def create_avatar(self, agent_id: str, spec: AvatarSpec) -> Avatar:
        if self._body.owner is not None:
            raise UsageError("There is one body in this meadow, and it is taken.")
        self._body = replace(self._body, owner=agent_id)
        return self.avatar()

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        if avatar_id != self.avatar().avatar_id or self._body.owner != agent_id:
            return JackInResult(False, None, "There is no such body of yours.")
        if self._body.state in (AvatarState.BOUND, AvatarState.DESTROYED):
            return JackInResult(False, self.avatar(), f"The body is {self._body.state.value}.")
        self._body = replace(self._body, state=AvatarState.BOUND)
        return JackInResult(True, self.avatar(), "You wake up.", {}, self.observe())

    def jack_out(self, agent_id: str, mode: str = "dormant") -> JackOutResult:
        if mode not in MODES or self._body.owner != agent_id or self._body.state is not AvatarState.BOUND:
            return JackOutResult(False, self._body.state, "That is not possible.")
        self._body = replace(self._body, state=MODES[mode])
        return JackOutResult(True, self._body.state, "You leave your body.")

    def handle_death(self, avatar_id: str) -> DeathEvent:
        return DeathEvent(avatar_id, "combat", "wolf", self.place, f"step {self.step}", {}, 0.0, [DEN])

    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        chosen = option if isinstance(option, str) else option.id
        if self._body.state is not AvatarState.DESTROYED or chosen != DEN.id:
            return JackInResult(False, None, "That is no way back.")
        self._body = replace(self._body, state=AvatarState.BOUND)
        self.begin()
        return JackInResult(True, self.avatar(), "You wake up in the den.", {}, self.observe())

    # --- pictures and snapshots ---------------------------------------------------------------------

    def render(self) -> View:
        rows = [["*" if (x, y) in self.bushes else "." for x in range(SIZE)] for y in range(SIZE)]
        rows[self.wolf[1]][self.wolf[0]] = "w"
        rows[self.place[1]][self.place[0]] = "@"
        return View([GridMapBlock(["".join(row) for row in rows], {"@": "you", "w": "wolf", "*": "berries"})])

    def snapshot(self) -> bytes:
        version, words, gauss = self._random.getstate()
        body = self._body
        return json.dumps(
            {
                "seed": [self._seed, self._episode],
                "numbers": [self.step, self.health, self.berries],
                "places": [self.place, self.wolf, self.bushes],
                "words": [self.facing, self.event, list(self.found)],
                "body": [body.number, body.owner, body.state.value, body.deaths],
                "random": [version, list(words), gauss],
            }
        ).encode()

    def restore(self, data: bytes) -> None:
        generator = random.Random()
        try:
            state = json.loads(data)
            seed, episode = (int(n) for n in state["seed"])
            step, health, berries = (int(n) for n in state["numbers"])
            place, wolf, bushes = state["places"]
            cells = [(int(x), int(y)) for x, y in (place, wolf, *bushes)]
            facing, event, found = state["words"]
            number, owner, body_state, deaths = state["body"]
            body = Body(int(number), owner, AvatarState(body_state), int(deaths))
            version, words, gauss = state["random"]
            generator.setstate((version, tuple(words), gauss))
            if facing not in STEPS or not isinstance(event, str):
                raise ValueError("the words can't be so")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SnapshotError(f"The meadow's snapshot is damaged: {error}.") from error
        self._seed, self._episode, self._random, self._body = seed, episode, generator, body
        self.step, self.health, self.berries = step, health, berries
        self.place, self.wolf, self.bushes = cells[0], cells[1], cells[2:]
        self.facing, self.event, self.found = facing, event, tuple(found)


def berries(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the berries an episode, 0 for none."""
    return sum(e.reward for e in episodes) / len(episodes) if episodes else 0.0


SPEC = AdapterSpec(
    "meadow",
    "Gather berries, beware of the wolf.",
    Meadow,
    abilities=("seed", "snapshot", "render", "avatars"),
    default_action=Action("wait"),
    score_metrics=(ScoreMetric("berries", "Berries an episode", berries, "berries", 0.0, 12.0),),
    achievements=(Achievement("first-berry", "Gather a berry."), Achievement("handful", "Gather three berries.")),
    wire_types=(MeadowObservation,),
)
