"""Meadows with one fault each, and the checks that must find it."""

from __future__ import annotations

import json
import pickle
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from meadow import LENGTH, RANGE, SPACE, SPEC, STEPS, Meadow

from wsap_core import (
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    AdapterSpec,
    AvatarState,
    DeathEvent,
    Entity,
    EpisodeSummary,
    JackInResult,
    JackOutResult,
    Observation,
    ParamDef,
    RespawnOption,
    ScoreMetric,
    View,
    derive_seed,
)
from wsap_core.errors import SnapshotError
from wsap_core.protocol import TOOL

FAULTS: dict[str, tuple[AdapterSpec, set[str]]] = {}
"""Name -> a broken world's spec, and exactly those checks that must fail."""


def finds(*checks: str, **changes: Any) -> Any:
    """Put a broken world on the list, with the checks that must fail and what its spec says otherwise."""

    def put(game: type[Meadow]) -> type[Meadow]:
        FAULTS[game.__name__] = (replace(SPEC, factory=game, **changes), set(checks))
        return game

    return put


# --- tools ------------------------------------------------------------------------------------

RECALL = ActionDef("recall", "Think of what you found", category=TOOL)


class Thoughtful(Meadow):
    """A sound meadow in which one can think of what one found."""

    action_space = ActionSpace([*SPACE.actions, RECALL])

    def carry_out(self, action: Action) -> ActionResult:
        return self.recall() if action.name == "recall" else super().carry_out(action)

    def recall(self) -> ActionResult:
        return ActionResult(True, f"{self.berries} berries.", observation=self.observe())


THOUGHTFUL = replace(SPEC, factory=Thoughtful)


@finds("tools")
class ThinkingTakesTime(Thoughtful):
    """Lets the wolf go on while one thinks."""

    def recall(self) -> ActionResult:
        self.pass_time()
        return ActionResult(True, f"{self.berries} berries.", done=self.done, observation=self.observe())


@finds("tools", "done")
class ThinkingEndsTheDay(Thoughtful):
    """Says that the day is over when one thinks."""

    def recall(self) -> ActionResult:
        return replace(super().recall(), done=True)


@finds("tools", default_action=Action("recall"))
class ThinksForTheAbsent(Thoughtful):
    """Thinks in the place of somebody who takes too long."""


# --- chance and time --------------------------------------------------------------------------


@finds("same-seed")
class SeedIgnored(Meadow):
    """Draws from a generator that nobody seeded."""

    def generator(self, seed: int) -> random.Random:
        return random.Random()


@finds("independent", "reset", "snapshot-continues")
class GlobalRandom(Meadow):
    """Seeds the process's own generator, and shares it with everybody."""

    def reset(self, seed: int | None = None) -> Observation:
        seen = super().reset(seed)
        random.seed(derive_seed(self._seed, self._episode))
        return seen

    def pass_time(self) -> None:
        super().pass_time()
        self.event = random.choice(["A bird sings.", "A leaf falls.", "The wind rises.", "All is still."])


class Counter:
    """Something that all worlds of a process share."""

    days = 0


@finds("same-seed")
class SharedCounter(Meadow):
    """Counts days over all worlds, in a class."""

    def begin(self) -> None:
        super().begin()
        Counter.days += 1

    def status(self) -> dict[str, object]:
        return {**super().status(), "day": Counter.days}


@finds("other-process")
class HashOrder(Meadow):
    """Chooses by the order of a set of texts."""

    def begin(self) -> None:
        super().begin()
        names = {"rose", "elder", "sloe", "rowan", "currant", "bramble"}
        self.event = f"You smell {next(iter(names))}, {list(names)[-1]} and {list(names)[2]}."


@finds("same-seed", "snapshot-continues")
class WallClock(Meadow):
    """Tells the time of the machine."""

    def status(self) -> dict[str, object]:
        return {**super().status(), "clock": time.perf_counter_ns()}

    def observe(self) -> Observation:
        # At least it tells the same time as long as nothing happens.
        if getattr(self, "_told", None) != (self.step, self._body, self.place):
            self._told = (self.step, self._body, self.place)
            self._seen = super().observe()
        return self._seen


@finds("other-process", "snapshot-elsewhere")
class LocalTime(Meadow):
    """Knows the hour of the place where the machine stands."""

    def status(self) -> dict[str, object]:
        return {**super().status(), "hour": time.strftime("%H:%M")}


# --- possible and impossible ---------------------------------------------------------------------


@finds("unavailable")
class UnavailableWorks(Meadow):
    """Says that one needs berries to gather, and lets one gather anyway."""

    def carry_out(self, action: Action) -> ActionResult:
        if action.name == "gather" and self.place not in self.bushes:
            self.pass_time()
            return ActionResult(True, "You gather grass.", observation=self.observe())
        return super().carry_out(action)

    def act(self, action: Action) -> ActionResult:
        if action == Action("gather") and not self.done and self._body.state is AvatarState.BOUND:
            return self.carry_out(action)
        return super().act(action)


@finds("available")
class AvailableRefused(Meadow):
    """Lists gathering as possible where there is nothing to gather."""

    def observe(self) -> Observation:
        seen = super().observe()
        given = seen.available_actions or ()
        listed = [replace(a, available=True, reason="") if a.name == "gather" else a for a in given]
        return replace(seen, available_actions=seen.available_actions if self.done else listed)


@finds("available")
class NeverWorks(Meadow):
    """Lists calling as possible, which never comes to anything but a lost step."""

    def carry_out(self, action: Action) -> ActionResult:
        result = super().carry_out(action)
        return replace(result, success=False, message="No sound.") if action.name == "call" else result


@finds("unavailable")
class NoReason(Meadow):
    """Lists what is impossible without saying why."""

    def observe(self) -> Observation:
        seen = super().observe()
        return replace(seen, available_actions=[replace(a, reason="") for a in seen.available_actions or ()])


@finds("availability-list")
class ListsUndeclared(Meadow):
    """Lists an action that it never declared."""

    def observe(self) -> Observation:
        seen = super().observe()
        return replace(seen, available_actions=[*(seen.available_actions or ()), ActionAvailability("fly")])


@finds("undeclared-actions", "avatar-actions")
class UndeclaredRaises(Meadow):
    """Looks the action up, come what may."""

    def act(self, action: Action) -> ActionResult:
        if action.name not in SPACE.names:
            raise KeyError(action.name)
        return super().act(action)


@finds("undeclared-actions")
class UndeclaredAccepted(Meadow):
    """Takes what it does not know for waiting."""

    def act(self, action: Action) -> ActionResult:
        return super().act(action if action.name in SPACE.names else Action("wait"))


@finds("undeclared-actions", "bad-parameters")
class RefusalCostsAStep(Meadow):
    """Refuses nonsense, and lets time pass for it."""

    def refusal(self, message: str) -> ActionResult:
        if not self.done and ("no action" in message or "parameter" in message or "needs" in message):
            self.pass_time()
        return super().refusal(message)


@finds("bad-parameters")
class ParametersRaise(Meadow):
    """Takes it for granted that parameters are right."""

    def act(self, action: Action) -> ActionResult:
        if action.name == "call" and action.parameters["how"] not in ("loud", "soft"):
            raise ValueError("how?")
        return super().act(action)


@finds("bad-parameters")
class ParametersIgnored(Meadow):
    """Does not look at parameters."""

    def act(self, action: Action) -> ActionResult:
        given = {"how": "loud"} if action.name == "call" else {}
        return super().act(Action(action.name, given))


@finds("undeclared-actions", "bad-parameters", "avatar-actions")
class SilentRefusals(Meadow):
    """Refuses without a word."""

    def refusal(self, message: str) -> ActionResult:
        return super().refusal("" if not self.done else message)


# --- episodes ---------------------------------------------------------------------------------------


@finds("done", "death")
class DoneIsNotFinal(Meadow):
    """Says done, and plays on."""

    over = False

    def act(self, action: Action) -> ActionResult:
        if self.done and action.name == "wait":
            return ActionResult(True, "You wait on.", 0.0, (), True, self.observe())
        if self.done and action.name == "north":
            return ActionResult(True, "You go on.", 0.0, (), True, self.observe())
        return super().act(action)


@finds("done")
class UndoesDone(Meadow):
    """Forgets that the day is over as soon as somebody asks again."""

    def refusal(self, message: str) -> ActionResult:
        return replace(super().refusal(message), done=False)


@finds("done")
class TruncatesNothing(Meadow):
    """Says that a limit has ended an episode that goes on."""

    def act(self, action: Action) -> ActionResult:
        return replace(super().act(action), truncated=True)


@finds("reset")
class ResetKeepsThings(Meadow):
    """Lets berries be carried over into the next episode."""

    berries = 0

    def begin(self) -> None:
        kept = self.berries
        super().begin()
        self.berries = kept


# --- what is said -------------------------------------------------------------------------------------


@finds("play")
class NotANumber(Meadow):
    """Rewards with a number that is none."""

    def result(self, result: ActionResult) -> ActionResult:
        return replace(result, reward=float("nan"))


@finds("play")
class SaysYes(Meadow):
    """Reports success in words."""

    def result(self, result: ActionResult) -> ActionResult:
        return replace(result, done="yes" if result.done else "")  # type: ignore[arg-type]


@finds("values", wire_types=())
class UnregisteredObservation(Meadow):
    """Sends observations of a class that its spec does not name."""


@finds("text")
class HugeText(Meadow):
    """Tells its whole history every time."""

    def status(self) -> dict[str, object]:
        return {**super().status(), "history": "and then you went on " * 500}


@finds("text")
class RawText(Meadow):
    """Has a text of its own, which lets through what a player's terminal obeys."""

    def observe(self) -> Observation:
        seen = super().observe()
        return Bell(**{k: v for k, v in vars(seen).items() if not k.startswith("_") and k != "smell"})


@dataclass(frozen=True, kw_only=True)
class Bell(type(Meadow().observe())):  # type: ignore[misc]
    """An observation that rings."""

    def to_text(self) -> str:
        return "\x07Ding! " + super().to_text()


FAULTS["RawText"] = (replace(FAULTS["RawText"][0], wire_types=(Bell,)), {"text"})


@finds("observing")
class SharedStatus(Meadow):
    """Hands out the same dict every time."""

    def status(self) -> dict[str, object]:
        self.__dict__.setdefault("_shared", {}).update(super().status())
        shared: dict[str, object] = self._shared
        return shared


@finds(
    "observing",
    # Whoever asks again sees something else, which several promises forbid.
    *("state-after", "undeclared-actions", "bad-parameters", "done", "reset", "snapshot-continues", "snapshot-refuses"),
    "avatar-actions",
)
class ObservingTakesTime(Meadow):
    """Lets the wolf walk whenever somebody looks twice."""

    looks = 0

    def observe(self) -> Observation:
        self.looks += 1
        return super().observe()

    def status(self) -> dict[str, object]:
        return {**super().status(), "looks": self.looks // 2 if self.looks % 7 == 0 else 0}


@finds("state-after")
class StaleResult(Meadow):
    """Answers with the observation from before the action."""

    def act(self, action: Action) -> ActionResult:
        before = self.observe()
        result = super().act(action)
        return replace(result, observation=before) if result.success and not result.done else result


@finds("action-space")
class DeclaredTwice(Meadow):
    """Declares an action twice."""

    action_space = ActionSpace([*SPACE.actions, ActionDef("wait", "Wait again")])


@finds("action-space")
class BadSchema(Meadow):
    """Declares a parameter that may be nothing at all."""

    action_space = ActionSpace([*SPACE.actions, ActionDef("hum", "Hum", [ParamDef("tune", "la||la")])])

    def against(self, name: str) -> str:
        return super().against(name) if name != "hum" else ""


# --- snapshots ----------------------------------------------------------------------------------------


@finds("snapshot-continues")
class SnapshotForgetsChance(Meadow):
    """Restores everything but the generator."""

    def restore(self, data: bytes) -> None:
        generator = self._random
        super().restore(data)
        self._random = generator

    def snapshot(self) -> bytes:
        return super().snapshot()


@finds("snapshot-refuses", "snapshot-is-data")
class PickledSnapshot(Meadow):
    """Pickles itself."""

    def snapshot(self) -> bytes:
        return pickle.dumps(super().snapshot())

    def restore(self, data: bytes) -> None:
        super().restore(pickle.loads(data))


@finds("snapshot-refuses")
class SnapshotRaises(Meadow):
    """Lets the error through that a damaged snapshot causes."""

    def restore(self, data: bytes) -> None:
        json.loads(data)["numbers"]
        super().restore(data)


@finds("snapshot-refuses")
class SnapshotHalfTaken(Meadow):
    """Takes what it can from a damaged snapshot before it refuses it."""

    def restore(self, data: bytes) -> None:
        try:
            self.step = int(json.loads(data)["numbers"][0]) + 1
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            self.step = 0
        super().restore(data)


SAVED: dict[int, bytes] = {}


@finds("snapshot-elsewhere")
class SnapshotIsATicket(Meadow):
    """Keeps its state in the process, and hands out the number of the shelf."""

    def snapshot(self) -> bytes:
        saved = super().snapshot()
        shelf = next((n for n, kept in SAVED.items() if kept == saved), len(SAVED))
        SAVED[shelf] = saved
        return json.dumps({"shelf": shelf, "note": "kept in a safe place"}).encode()

    def restore(self, data: bytes) -> None:
        try:
            saved = SAVED[json.loads(data)["shelf"]]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise SnapshotError("There is no such shelf.") from error
        super().restore(saved)


@finds("snapshot-silent", "snapshot-continues", "snapshot-refuses")
class SnapshotDrawsChance(Meadow):
    """Uses up a random number for every snapshot."""

    def snapshot(self) -> bytes:
        saved = super().snapshot()
        self._random.random()
        return saved


# --- senses --------------------------------------------------------------------------------------------


@finds("vision-range")
class SeesTooFar(Meadow):
    """Reports what lies farther away than the eyes reach."""

    def sees(self, cell: tuple[int, int]) -> bool:
        ahead = abs((self.bearing(cell) - 90 * list(STEPS).index(self.facing) + 180) % 360 - 180)
        return ahead <= 90


@finds("vision-cone")
class SeesBehind(Meadow):
    """Reports what lies behind."""

    def sees(self, cell: tuple[int, int]) -> bool:
        return (cell[0] - self.place[0]) ** 2 + (cell[1] - self.place[1]) ** 2 <= RANGE**2


@finds("directions")
class VagueDirections(Meadow):
    """Says where things are in words of its own."""

    def entity(self, kind: str, cell: tuple[int, int]) -> Entity:
        return replace(super().entity(kind, cell), direction="over there")


# --- abilities -------------------------------------------------------------------------------------------


@finds("abilities")
class NoPicture(Meadow):
    """Declares pictures and has none."""

    render = None  # type: ignore[assignment]


@finds("rendering")
class PictureDrawsChance(Meadow):
    """Uses the game's generator for the looks of a picture."""

    def render(self) -> View:
        self._random.random()
        return super().render()


@finds("rendering")
class RaggedPicture(Meadow):
    """Draws rows of different lengths."""

    def render(self) -> View:
        view = super().render()
        grid: Any = view.blocks[0]
        return View([replace(grid, rows=[grid.rows[0][1:], *grid.rows[1:]])])


@finds("achievements")
class UnknownAchievement(Meadow):
    """Reports an achievement that no catalogue has."""

    def result(self, result: ActionResult) -> ActionResult:
        return replace(result, achievements=["walked"]) if self.step == 5 else result


@finds("achievements")
class AchievedAgain(Meadow):
    """Reports what was achieved in every step from then on."""

    def result(self, result: ActionResult) -> ActionResult:
        return replace(result, achievements=self.found)


def mean_without_care(episodes: Sequence[EpisodeSummary]) -> float:
    """Return a mean that nobody thought through."""
    return sum(e.reward for e in episodes) / len(episodes)


@finds("score-metrics", score_metrics=(ScoreMetric("mean", "Mean", mean_without_care),))
class ScoreOfNothing(Meadow):
    """Has a score that breaks where there is no episode."""


@finds("spec", seats=(1, 4))
class ClaimsSeats(Meadow):
    """Says that four can play, and seats one."""


# --- bodies ------------------------------------------------------------------------------------------------


@finds("death")
class TheDeadWalk(Meadow):
    """Lets a dead body act."""

    def act(self, action: Action) -> ActionResult:
        if self.health <= 0:
            return ActionResult(True, "You haunt the meadow.", 0.0, (), True, self.observe())
        return super().act(action)


@finds("avatar-states")
class Undead(Meadow):
    """Destroys the body, and does not end the episode."""

    @property
    def done(self) -> bool:
        return self.step >= LENGTH

    def against(self, name: str) -> str:
        return "you are dead" if self.health <= 0 else super().against(name)


@finds("jack-in")
class TwoMinds(Meadow):
    """Lets a second agent into a body that is taken."""

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        if self._body.state is AvatarState.BOUND:
            return JackInResult(True, self.avatar(), "There is room for two.", {}, self.observe())
        return super().jack_in(agent_id, avatar_id)


@finds("jack-in", "jack-out", "death")
class EntryRaises(Meadow):
    """Raises where it should refuse."""

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        if avatar_id != self.avatar().avatar_id or self._body.state is AvatarState.DESTROYED:
            raise KeyError(avatar_id)
        return super().jack_in(agent_id, avatar_id)


@finds("jack-out")
class AlwaysDormant(Meadow):
    """Leaves the body dormant, whatever was asked."""

    def jack_out(self, agent_id: str, mode: str = "dormant") -> JackOutResult:
        result = super().jack_out(agent_id, mode)
        if result.success:
            self._body = replace(self._body, state=AvatarState.DORMANT)
        return result


@finds("jack-out")
class SleepwalkingBody(Meadow):
    """Lets anybody move a body that nobody is in."""

    def act(self, action: Action) -> ActionResult:
        if self._body.state in (AvatarState.DORMANT, AvatarState.SUSPENDED):
            return self.carry_out(action)
        return super().act(action)


@finds("death")
class NamelessDeath(Meadow):
    """Tells nothing of a death."""

    def handle_death(self, avatar_id: str) -> DeathEvent:
        return DeathEvent("somebody", "")


@finds("death")
class AnyWayBack(Meadow):
    """Takes any option for the way back to life."""

    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        return super().respawn(avatar_id, "den")


@finds("avatar-states")
class WrongOwner(Meadow):
    """Shows its body as bound to somebody else."""

    def observe(self) -> Observation:
        seen: Any = super().observe()
        return replace(seen, avatar=replace(seen.avatar, bound_agent="somebody"))


@finds("play")
class FallsApart(Meadow):
    """Breaks down in the tenth step."""

    def pass_time(self) -> None:
        super().pass_time()
        if self.step == 10:
            raise RuntimeError("the fence fell over")


@finds("members")
class Wordless(Meadow):
    """Says nothing about itself."""

    game_description = " "


@finds("avatar-actions")
class CostlyMirror(Meadow):
    """Lets time pass while one looks at oneself."""

    action_space = ActionSpace([*SPACE.actions, ActionDef("inspect_self", "Look at yourself")])
