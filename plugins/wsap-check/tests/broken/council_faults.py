"""Councils with one fault each, and the checks that must find it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from council import SEATS, Archive, Chair, Council, CouncilInTurn, spec_of

from wsap_core import Action, ActionResult, AdapterSpec, AgentMessage, Context, Event, Mailbox, Observation

FAULTS: dict[str, tuple[AdapterSpec, set[str]]] = {}
"""Name -> a broken world's spec, and exactly those checks that must fail."""


def finds(*checks: str) -> Any:
    """Put a broken world on the list, with the checks that must fail."""

    def put(game: type[Council]) -> type[Council]:
        FAULTS[game.__name__] = (spec_of(game), set(checks))
        return game

    return put


class EagerChair(Chair):
    """A seat that tells the council what it chose before the others have."""

    async def act(self, action: Action) -> ActionResult:
        self.game.__dict__.setdefault("chosen", {})[self.name] = action.name
        try:
            return await super().act(action)
        finally:
            self.game.__dict__["chosen"].pop(self.name, None)


@finds("hidden-choices", "arrival-order")
class ChoiceLeaks(Council):
    """Shows what others have chosen before the round is resolved."""

    def seat(self, agent_id: str) -> Chair:
        return EagerChair(self, agent_id)

    def observation(self, seat: str) -> Observation:
        seen = super().observation(seat)
        chosen = sorted(self.__dict__.get("chosen", {}).items())
        return replace(seen, status={**seen.status, "already chosen": [f"{s}: {c}" for s, c in chosen if s != seat]})


@finds("secrets")
class WorthLeaks(CouncilInTurn):
    """Shows what the motion is worth to the neighbour, also to members that wait for their turn."""

    def see(self, seat: str) -> Observation:
        seen = super().see(seat)
        return replace(seen, status={**seen.status, "next": self.worth[SEATS.index(seat) - 1]})


@finds("secrets")
class WorthHeard(Council):
    """Lets the words of a result depend on what the motion is worth to others."""

    def message(self, seat: str, pay: float) -> str:
        return f"{super().message(seat, pay)} All in all it is worth {sum(self.worth)}."


@finds("legal-moves")
class Misspelt(Council):
    """Calls something legal that nobody can do."""

    def legal(self, seat: str) -> list[str]:
        return [*super().legal(seat), "abstian"]


@finds("zero-sum")
class PaidTwice(Council):
    """Says that it is zero-sum, and is not."""

    zero_sum = True


class Whisperer(Mailbox):
    """A mailbox that everybody can look into."""

    def _hearers(self, message: AgentMessage) -> list[str]:
        return [seat for seat in SEATS if seat != message.sender]


@finds("messages")
class MessagesLeak(Council):
    """Delivers every message to everybody."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        object.__setattr__(self, "mailbox", Whisperer(SEATS, team_of=self.team_of))  # past the guard of names


@finds("messages")
class MessagesLost(Council):
    """Never delivers what was said."""

    def apply(self, moves: Mapping[str, Action]) -> None:
        self.mailbox.clear()
        super().apply(moves)


class HastyChair(Chair):
    """A seat that writes down what it wants as it comes."""

    async def act(self, action: Action) -> ActionResult:
        order: list[str] = self.game.__dict__.setdefault("arrived", [])
        order.append(self.name)
        return await super().act(action)


@finds("arrival-order")
class FirstComeFirstServed(Council):
    """Pays whoever acts first."""

    def seat(self, agent_id: str) -> Chair:
        return HastyChair(self, agent_id)

    def apply(self, moves: Mapping[str, Action]) -> None:
        super().apply(moves)
        self.pay[self.__dict__["arrived"][0]] += 1.0
        self.__dict__["arrived"] = []


@finds("shared-world")
class WorldAnswers(Council):
    """Lets the world itself be observed, as if it were the first seat."""

    def observe(self) -> Observation:
        return self.observation(SEATS[0])


class ResettingChair(Chair):
    """A seat that begins anew for everybody."""

    def reset(self) -> Observation:
        return self.game.reset()


@finds("shared-world")
class AnySeatResets(Council):
    """Lets one member begin anew for all."""

    def seat(self, agent_id: str) -> Chair:
        return ResettingChair(self, agent_id)


class ImpatientChair(Chair):
    """A seat that waits for nobody."""

    async def act(self, action: Action) -> ActionResult:
        council = self.game
        if council.to_move() and self.name not in council.to_move() and action.name in ("yes", "no", "pass"):
            council.last = [f"{self.name} shouts {action.name}."]
            return ActionResult(True, "You shout.", observation=council.observation(self.name))
        return await super().act(action)


@finds("turns")
class OutOfTurn(CouncilInTurn):
    """Lets a member act when it is another's turn."""

    def seat(self, agent_id: str) -> Chair:
        return ImpatientChair(self, agent_id)


class PatientChair(Chair):
    """A seat that waits for a fourth member who does not exist."""

    async def act(self, action: Action) -> ActionResult:
        await super().act(action)
        return await asyncio.get_running_loop().create_future()


@finds("play")
class NeverResolves(Council):
    """Never tells what came of a vote."""

    def seat(self, agent_id: str) -> Chair:
        return PatientChair(self, agent_id)


@finds("snapshot-continues")
class SnapshotForgetsMotion(Council):
    """Draws another motion when it is restored."""

    def restore(self, data: bytes) -> None:
        super().restore(data)
        self.draw_motion()
        self.last.append(Event("The papers are in disorder.").description)


class SlowReader(Chair):
    """A seat that is shown the minutes when all have voted, and before that says nothing."""

    async def act(self, action: Action) -> ActionResult:
        if action.name != "minutes" or action.parameters or not self.game.to_move():
            return await super().act(action)
        passed = await super().act(Action("pass"))
        return ActionResult(True, "None.", done=passed.done, observation=passed.observation)


@finds("tools")
class MinutesWait(Archive):
    """Has those who read the minutes wait for the others."""

    def seat(self, agent_id: str) -> Chair:
        return SlowReader(self, agent_id)
