"""A small world of three seats that keeps every promise: simultaneous or in turn, with teams and messages."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Literal

from wsap_core import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    AdapterSpec,
    Barrier,
    Context,
    Event,
    Mailbox,
    Observation,
    derive_seed,
)
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import TOOL
from wsap_core.worlds.legality import check_action, index_actions

SEATS = ("ann", "bob", "cid")
TEAMS = {"ann": "north", "bob": "south", "cid": "north"}
SPACE = ActionSpace(
    [ActionDef("yes", "Vote for it"), ActionDef("no", "Vote against it"), ActionDef("pass", "Do not vote")]
)
ROUNDS = 12


class Council:
    """Three members vote on motions; each motion is worth something to each of them."""

    game_description = "Three members of a council vote on motions. A motion is carried by more yes than no."
    action_space = SPACE
    timing: Literal["simultaneous", "alternating"] = "simultaneous"

    def __init__(self, context: Context | None = None) -> None:
        self._seed, self._episode = (context or Context()).seed, -1
        self.mailbox = self.make_mailbox()
        self.barrier = Barrier(
            SEATS, self.resolve, lambda seat: Action("pass"), timing=self.timing, observe=self.observation
        )
        self.reset()

    def make_mailbox(self) -> Mailbox:
        return Mailbox(SEATS, team_of=self.team_of, immediate=self.timing == "alternating")

    def team_of(self, agent_id: str) -> str | None:
        return TEAMS.get(agent_id)

    def reset(self, seed: int | None = None) -> Observation:
        if seed is None:
            self._episode += 1
        else:
            self._seed, self._episode = seed, 0
        self._random = random.Random(derive_seed(self._seed, self._episode))
        self.votes: dict[str, str] = {}
        self.last: list[str] = []
        self.round = 0
        self.draw_motion()
        self.barrier.restart()
        self.mailbox.clear()
        return self.observation(SEATS[0])

    def draw_motion(self) -> None:
        self.worth = [self._random.randint(-3, 3) for _ in SEATS]

    @property
    def done(self) -> bool:
        return self.round >= ROUNDS

    def observe(self) -> Observation:
        raise UsageError("Ask a seat.")

    def act(self, action: Action) -> ActionResult:
        raise UsageError("Ask a seat.")

    def seat(self, agent_id: str) -> Chair:
        return Chair(self, agent_id)

    def observation(self, seat: str) -> Observation:
        """Return what one member knows: its own worth of the motion, and how the last ones went."""
        return Observation(
            status={"worth to you": self.worth[SEATS.index(seat)], "round": self.round},
            recent_events=[Event(text) for text in self.last[-3:]],
            step=self.round,
        )

    def resolve(self, actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        """Take votes; carry out the motion when all are there."""
        self.votes.update({seat: action.name for seat, action in actions.items()})
        if len(self.votes) < len(SEATS):
            return {}
        names = list(self.votes.values())
        carried = names.count("yes") > names.count("no")
        rewards = [float(w) if carried else 0.0 for w in self.worth]
        self.last = [f"The motion was {'carried' if carried else 'lost'} with {names.count('yes')} yes."]
        self.votes = {}
        self.round += 1
        self.draw_motion()
        self.mailbox.deliver()
        return {s: ActionResult(True, self.last[0], rewards[i], (), self.done) for i, s in enumerate(SEATS)}

    def snapshot(self) -> bytes:
        version, words, gauss = self._random.getstate()
        return json.dumps(
            {
                "seed": [self._seed, self._episode],
                "round": self.round,
                "worth": self.worth,
                "last": self.last,
                "votes": self.votes,
                "turn": [self.barrier.round, self.barrier.current_turn],
                "random": [version, list(words), gauss],
            }
        ).encode()

    def restore(self, data: bytes) -> None:
        generator = random.Random()
        try:
            state = json.loads(data)
            seed, episode = (int(n) for n in state["seed"])
            number, worth, last = int(state["round"]), [int(w) for w in state["worth"]], list(map(str, state["last"]))
            votes = {seat: str(vote) for seat, vote in state["votes"].items()}
            barrier_round, turn = int(state["turn"][0]), state["turn"][1]
            version, words, gauss = state["random"]
            generator.setstate((version, tuple(words), gauss))
            if turn not in SEATS or len(worth) != len(SEATS):
                raise ValueError("the turn or the worth can't be so")
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise SnapshotError(f"The council's snapshot is damaged: {error}.") from error
        self._seed, self._episode, self._random = seed, episode, generator
        self.round, self.worth, self.last, self.votes = number, worth, last, votes
        self.barrier.restart(round_number=barrier_round, turn=turn)


class Chair:
    """The council as one member sees it."""

    def __init__(self, council: Council, seat: str) -> None:
        self.council = council
        self.name = seat
        self._round = 0

    @property
    def game_description(self) -> str:
        return f"{self.council.game_description} You are {self.name}."

    @property
    def action_space(self) -> ActionSpace:
        return self.council.action_space

    async def observe(self) -> Observation:
        if not self.council.done:
            self._round = await self.council.barrier.turn(self.name)
        return self.council.observation(self.name)

    async def act(self, action: Action) -> ActionResult:
        council = self.council
        action, reason = check_action(action, index_actions(SPACE))
        if council.done:
            reason = "The council has gone home."
        if reason:
            return ActionResult(False, reason, done=council.done, observation=council.observation(self.name))
        result = await council.barrier.act(self.name, action)
        return ActionResult(
            result.success, result.message, result.reward, (), council.done, council.observation(self.name)
        )

    def reset(self) -> Observation:
        raise UsageError("One member can't begin anew.")


class CouncilInTurn(Council):
    """The same council, voting one after another."""

    timing = "alternating"


class Archive(Council):
    """The same council, whose members may look up at any time how the last motions went."""

    action_space = ActionSpace([*SPACE.actions, ActionDef("minutes", "How the last motions went", category=TOOL)])

    def seat(self, agent_id: str) -> Chair:
        return Reader(self, agent_id)


class Reader(Chair):
    """A seat in that council."""

    async def act(self, action: Action) -> ActionResult:
        council = self.council
        action, reason = check_action(action, index_actions(council.action_space))
        if action.name != "minutes" or reason or council.done:
            return await super().act(action)
        return ActionResult(True, " ".join(council.last) or "None.", observation=council.observation(self.name))


class ArchiveInTurn(Archive):
    """The same, voting one after another."""

    timing = "alternating"


def spec_of(game: type[Council]) -> AdapterSpec:
    """Return the spec of a council."""
    return AdapterSpec(
        "council",
        "Vote on motions.",
        game,
        abilities=("seed", "snapshot", "multi-seat", "messages"),
        seats=(3, 3),
        seat_names=SEATS,
        timing=game.timing,
        default_action=Action("pass"),
    )
