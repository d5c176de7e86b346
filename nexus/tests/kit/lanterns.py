"""A game for five: each wears a lantern whose number only the others see, and is out after two wrong guesses."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from wsap_core import Action, ActionDef, ActionSpace, Observation, ParamDef, Possible
from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol.values import JsonValue

HINTS, LIVES, HALF = 8, 2, 6


class Lanterns(RoundGame):
    """`KILL_AT` kills its process at that move of it."""

    game_description = (
        "Everybody wears a lantern with a number from 1 to 10 that only the others see. In turn, tell somebody whether "
        "theirs is low (1 to 5) or high, or guess your own. A right guess earns a point and a new lantern; after two "
        "wrong ones you are out. There are eight hints and twelve lanterns to draw."
    )
    action_space = ActionSpace([
        ActionDef("guess", "Guess your own lantern", [ParamDef("number", "low|high")]),
        ActionDef("hint", "Tell somebody about theirs", [ParamDef("to", "ann|bob|cid|dee|eve")]),
    ])  # fmt: skip
    seats = ("ann", "bob", "cid", "dee", "eve")
    talks = True
    moves: ClassVar[int] = 0

    def begin(self) -> None:
        drawn = [self.random.randint(1, 10) for _ in range(len(self.seats) + 12)]
        self.worn, self.deck = dict(zip(self.seats, drawn, strict=False)), drawn[len(self.seats) :]
        self.lives, self.points = dict.fromkeys(self.seats, LIVES), dict.fromkeys(self.seats, 0)
        self.hints, self.last, self.log = HINTS, "eve", list[str]()

    def to_move(self) -> Sequence[str]:
        after = self.seats.index(self.last) + 1
        here = [seat for seat in (*self.seats[after:], *self.seats[:after]) if self.lives[seat]]
        return here[:1] if len(here) > 1 and self.deck else ()

    def out(self, seat: str) -> bool:
        return not self.lives[seat]

    def legal(self, seat: str) -> Sequence[str | Possible]:
        others = [name for name in self.seats if name != seat and self.lives[name]]
        return ["guess", *([Possible("hint", choices={"to": others})] if self.hints else [])]

    def apply(self, moves: Mapping[str, Action]) -> None:
        Lanterns.moves += 1
        if Lanterns.moves == int(os.environ.get("KILL_AT", "0")):
            os.kill(os.getpid(), signal.SIGKILL)
        ((seat, action),) = moves.items()
        self.last = seat
        if action.name == "hint":
            other = str(action.parameters["to"])
            self.hints -= 1
            self.log.append(f"{seat} tells {other}: {self.kind(other)}")
        elif action.parameters["number"] == self.kind(seat):
            self.points[seat] += 1
            self.worn[seat] = self.deck.pop()
            self.log.append(f"{seat} guesses right")
        else:
            self.lives[seat] -= 1
            self.log.append(f"{seat} guesses wrong")

    def kind(self, seat: str) -> str:
        """Return whether the seat's lantern is low or high."""
        return "low" if self.worn[seat] < HALF else "high"

    def see(self, seat: str) -> Observation:
        others = {name: number for name, number in self.worn.items() if name != seat}
        public = {"lives": dict(self.lives), "points": dict(self.points), "hints": self.hints, "left": len(self.deck)}
        return Observation(status={"lanterns": others, **public, "log": self.log[-6:]})

    def returns(self) -> Mapping[str, float]:
        return {seat: float(points) for seat, points in self.points.items()}

    def dump(self) -> JsonValue:
        kept = [self.worn, self.lives, self.points]
        return [[[table[seat] for seat in self.seats] for table in kept], self.deck, self.hints, self.last, self.log]

    def load(self, data: JsonValue) -> None:
        tables, deck, hints, last, log = data
        if last not in self.seats:
            raise ValueError(f"nobody is called {last!r}")
        self.worn, self.lives, self.points = (
            {seat: int(n) for seat, n in zip(self.seats, row, strict=True)} for row in tables
        )
        self.deck, self.hints, self.last, self.log = [int(n) for n in deck], int(hints), last, [str(t) for t in log]

    def vary_hidden(self, rng: Random) -> Sequence[str] | None:
        """Give somebody another lantern of the same kind, which the others may notice, or change one not yet drawn."""
        if rng.random() < 0.3 and self.deck:
            self.deck[0] = self.deck[0] % 10 + 1
            return ()
        owner = rng.choice([seat for seat in self.seats if self.lives[seat]])
        low = self.worn[owner] < HALF
        self.worn[owner] = self.worn[owner] % 5 + 1 + (0 if low else 5)
        return [seat for seat in self.seats if seat != owner]
