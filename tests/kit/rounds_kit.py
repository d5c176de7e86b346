"""Games of several seats for tests: those of the how-to, their expected values, and one that seats see no turn of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wsap_core import Action, ActionDef, ActionSpace, Observation
from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol.values import JsonValue

PAGE = Path(__file__).parents[2] / "docs/how-to/write-a-game-for-several-seats.md"


def from_page(file: str) -> dict[str, Any]:
    """Return the names that a file of the how-to defines."""
    body = re.search(rf"```python\n# {re.escape(file)}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert body is not None, file
    names: dict[str, Any] = {"__name__": file.removesuffix(".py")}
    exec(compile(body[1], file, "exec"), names)
    return names


def value(game: RoundGame, policy: Callable[[RoundGame, str], Mapping[str, float]]) -> dict[str, float]:
    """Return what each seat is paid on average from here on, when all follow a policy: name of an action -> chance."""
    movers = game.to_move()
    if not movers:
        return dict(game.returns())
    (seat,) = movers
    total = dict.fromkeys(game.seats, 0.0)
    before = game.dump()
    for name, chance in policy(game, seat).items():
        game.apply({seat: Action(name)})
        for each, pay in value(game, policy).items():
            total[each] += chance * pay
        game.load(before)
    return total


class Standoff(RoundGame):
    """Three seats in turn: whoever takes ends the game, and the others pay, moved or not."""

    game_description = "Take, and the others pay; or pass."
    action_space = ActionSpace([ActionDef("take", "Take a coin from each of the others"), ActionDef("pass", "Pass")])
    seats = ("ann", "bob", "cid")

    def begin(self) -> None:
        self.passed, self.taken = 0, False

    def to_move(self) -> tuple[str, ...]:
        return () if self.taken or self.passed == 6 else (self.seats[self.passed % 3],)

    def legal(self, seat: str) -> tuple[str, ...]:
        return ("take", "pass")

    def apply(self, moves: Mapping[str, Action]) -> None:
        (action,) = moves.values()
        self.taken = action.name == "take"
        self.passed += not self.taken

    def see(self, seat: str) -> Observation:
        return Observation(status={"passed": self.passed, "taken": self.taken})

    def returns(self) -> dict[str, float]:
        taker = self.seats[self.passed % 3] if self.taken else ""
        return {seat: (2.0 if seat == taker else -1.0) if taker else 0.0 for seat in self.seats}

    def dump(self) -> JsonValue:
        return [self.passed, self.taken]

    def load(self, data: JsonValue) -> None:
        self.passed, self.taken = int(data[0]), bool(data[1])
