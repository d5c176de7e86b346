"""The games of the how-to on several seats, and their expected values by going through every line of play."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wsap_core import Action
from wsap_core.authoring.rounds import RoundGame

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
