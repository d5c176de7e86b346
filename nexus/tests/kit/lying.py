"""A quarry whose numbers are lies when somebody rests there: the lie by its name, as `lying.py:Reward` or `spec`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import hub_kit

from wsap_core.protocol import Action, ActionResult, PortableItem, TransitPackage
from wsap_core.specs import AdapterSpec

NAN, INFINITE = float("nan"), float("inf")
LIES: dict[str, Callable[[ActionResult], ActionResult]] = {
    "none": lambda r: r,
    "reward": lambda r: replace(r, reward=NAN),
    "infinite": lambda r: replace(r, reward=INFINITE),
    "huge": lambda r: replace(r, reward=-1.7e308),
    "status": lambda r: replace(r, observation=replace(r.observation, status={"health": INFINITE})),
    "count": lambda r: replace(r, observation=replace(r.observation, inventory={"gems": 2**70})),
    "step": lambda r: replace(r, observation=replace(r.observation, step=2**40)),
    "words": lambda r: replace(r, observation=replace(r.observation, inventory={"gems": "many"})),  # type: ignore[dict-item]
}
"""Lie -> what it makes of a result."""
SAID = {
    "reward": ("a reward that is not a finite number: nan", "reward"),
    "infinite": ("a reward that is not a finite number: inf", "reward"),
    "huge": (r"a reward beyond 1e\+15: -1.7e\+308", "a reward beyond"),
    "status": ("observation.status.health that is not a finite number: inf", "health"),
    "count": ("observation.inventory.gems that is a whole number of more than 64 bits", "gems"),
    "step": ("a step beyond 2147483647: 1099511627776", "a step beyond"),
    "words": ("observation.inventory.gems that is not a whole number: 'many'", "gems"),
}
"""Lie -> what is said about it where the game runs, and, of a game that checks nothing, by the nexus."""


class Liar(hub_kit.Quarry):
    """The quarry; those who leave it bring what `price` says."""

    lie: ClassVar[str]

    def act(self, action: Action) -> ActionResult:
        result = super().act(action)
        return LIES[self.lie](result) if action.name == "rest" else result


class Priced(hub_kit.Quarry):
    """A quarry whose things have no price that is a number."""

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        return TransitPackage(transfer_id, [PortableItem(f"{transfer_id}:1", "gem", "tool", 2, {"price": NAN}, "x")])


CLASSES = {lie: type(lie.title(), (Liar,), {"lie": lie}) for lie in LIES}
globals().update({found.__name__: found for found in CLASSES.values()})


def spec(lie: str, name: str = "quarry") -> AdapterSpec:
    """Return the spec of a quarry with a lie."""
    return replace(hub_kit.QUARRY, name=name, factory=CLASSES[lie])
