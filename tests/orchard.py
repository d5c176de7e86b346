"""A small game written with `OneBodyGame`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, ClassVar

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Context, Event, Location
from wsap_core.authoring.grid import GridObservation
from wsap_core.authoring.one_body import OneBodyGame, Refused
from wsap_core.protocol import Bonus, PortableItem, TransferRule

SPACE = ActionSpace(
    [ActionDef("shake", "Shake the tree"), ActionDef("saw", "Saw a branch off"), ActionDef("climb", "Up")]
)
RULES = (
    TransferRule("farmer", "resource_management", 0.5, Bonus("item", "basket"), "a basket"),
    TransferRule("strong", "survival", 0.2, Bonus("stat", "grip", 2), "a better grip"),
)


class Orchard(OneBodyGame):
    """Apples fall when the tree is shaken; a branch falls too when one has a saw, which breaks; climbing may kill."""

    game_id = "orchard"
    game_description = "An orchard."
    action_space = SPACE
    transfer_rules = RULES
    wsap_spec: ClassVar[dict[str, Any]] = {"transfer_rules": RULES, "wire_types": (GridObservation,)}

    def __init__(self, context: Context | None = None) -> None:
        super().__init__()
        self._apples, self._news = 0, ""
        self._random = random.Random(0)
        self.reset((context or Context()).seed)

    def begin(self, seed: int | None) -> None:
        self._random = self._random if seed is None else random.Random(seed)
        self._apples, self._news = 0, ""

    def refusal(self, action: Action) -> str:
        if action.name == "saw" and not self.items.count()["saw"]:
            return "you have no saw"
        return ""

    def play(self, action: Action) -> ActionResult:
        self._news = ""
        if action.name == "saw":
            self.use_up("saw", "broken in the branch")
        elif action.name == "climb" and self._random.randrange(8) >= 6 + self.gifts["grip"] // 2:
            self._news = "You fall."
            self.die("a fall")
        else:
            self._apples += self._random.randrange(3)
        return ActionResult(True, "Done.", observation=self.observe(), done=self.done)

    def observe(self) -> GridObservation:
        things = {**self.items.count(), "apples": self._apples, **self.gifts}
        return GridObservation(
            inventory=things,
            location=Location((0.0, 1.0)),
            recent_events=[Event(self._news)] if self._news else [],
            step=self.steps,
            available_actions=self.possible(),
            avatar=self.avatar(position=(0.0, 1.0), inventory=things),
            local_map=["T.", ".@"],
            legend={"T": "tree", ".": "grass", "@": "you"},
        )

    def thing_for(self, item: PortableItem) -> str | Refused:
        return "saw" if item.category == "tool" else Refused("an orchard has no use for it")

    def take_out(self) -> Sequence[PortableItem]:
        apples, self._apples = self._apples, 0
        return [PortableItem("", "apple", "consumable", 1, {}, "orchard") for _ in range(apples)]

    def sleep(self, steps: int) -> Sequence[str]:
        self._apples += steps // 20
        return [f"Apples have fallen for {steps} steps."]

    def danger(self) -> str:
        return "wasps are about" if self._apples == 13 else ""

    def dump(self) -> Any:
        version, words, gauss = self._random.getstate()
        return [self._apples, self._news, version, list(words), gauss]

    def load(self, data: Any) -> None:
        apples, news, version, words, gauss = data
        self._apples, self._news = int(apples), str(news)
        self._random.setstate((version, tuple(words), gauss))
