"""A game that ends its process, raises or waits on some seeds; tests play copies of this file as `file.py:Hazard`."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Observation
from wsap_core.seams.context import Context

HERE = Path(__file__).parent


class Hazard:
    """Adds up random numbers for as many steps as `steps` says; `always`, `once` and `raises` list seeds by commas."""

    game_description = "Go on."
    action_space = ActionSpace((ActionDef("left", "Go left"), ActionDef("right", "Go right")))

    def __init__(self, context: Context) -> None:
        self._steps = int(context.config.get("steps", "3"))
        self._on = {deed: str(context.config.get(deed, "")).split(",") for deed in ("always", "once", "raises")}
        self.reset(context.seed)

    def reset(self, seed: int | None = None) -> Observation:
        self._seed, self._step, self._sum = seed, 0, 0
        self._random = random.Random(seed)
        return self.observe()

    def observe(self) -> Observation:
        return Observation({"sum": self._sum}, step=self._step)

    def act(self, action: Action) -> ActionResult:
        self._step += 1
        self._sum += self._random.randrange(1000) * (1 if action.name == "left" else -1)
        if self._step == 2:
            self._be_dangerous()
        return ActionResult(True, "Done.", float(self._sum), done=self._step >= self._steps, observation=self.observe())

    def snapshot(self) -> bytes:
        version, internal, gauss = self._random.getstate()
        return json.dumps([self._seed, self._step, self._sum, version, internal, gauss]).encode()

    def restore(self, state: bytes) -> None:
        self._seed, self._step, self._sum, version, internal, gauss = json.loads(state)
        self._random.setstate((version, tuple(internal), gauss))

    def _be_dangerous(self) -> None:
        seed = str(self._seed)
        mark = HERE / f"died-of-{seed}"
        if seed in self._on["raises"]:
            raise KeyError("something it forgot")
        if seed in self._on["always"] or (seed in self._on["once"] and not mark.exists()):
            mark.write_text(str(os.getpgrp()))
            os._exit(3)
