"""A small world that can't be rewound: a bell in another place, whose strokes are in a file."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, AdapterSpec, Context, Observation
from wsap_core.seams.game import ChoiceKey


class Bell:
    """Rings once for each key. The file has a line `heard KEY` before the stroke, and `rung KEY` after it.

    The options are `file`, and `ends`, the stroke that ends an episode. The environment's `BELL_DIES`, such as
    `heard 3`, says after which of its lines the process is killed.
    """

    game_description = "A bell."
    action_space = ActionSpace((ActionDef("ring", "Ring the bell."),))

    def __init__(self, context: Context) -> None:
        self._file = Path(str(context.config["file"]))
        self._ends = int(context.config.get("ends", 0))
        word, _, number = os.environ.get("BELL_DIES", "").partition(" ")
        self._dies = (word, int(number or 0))
        self._written: dict[str, int] = {}

    def reset(self) -> Observation:
        return self.observe()

    def observe(self) -> Observation:
        return Observation({"rung": len(self._lines("rung"))})

    def act(self, action: Action) -> ActionResult:
        raise AssertionError("a choice has a key here")

    def act_once(self, action: Action, key: ChoiceKey) -> ActionResult:
        assert key.text not in self._lines("heard") or key.again, "it was acted again"
        if key.text in self._lines("rung"):
            return ActionResult(True, "It has rung.", observation=self.observe())
        if key.text in self._lines("heard"):
            return ActionResult(False, "Nobody heard it.", observation=self.observe(), outcome="unknown")
        self._write("heard", key.text)
        self._write("rung", key.text)
        over = len(self._lines("rung")) == self._ends
        return ActionResult(True, "It rings.", reward=1.0, done=over, observation=self.observe())

    def _lines(self, word: str) -> list[str]:
        if not self._file.exists():
            return []
        return [line.partition(" ")[2] for line in self._file.read_text().splitlines() if line.startswith(word)]

    def _write(self, word: str, key: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{word} {key}\n")
        self._written[word] = self._written.get(word, 0) + 1
        if (word, self._written[word]) == self._dies:
            os.kill(os.getpid(), signal.SIGKILL)


BELL = AdapterSpec("bell", "A bell that rings once.", Bell, abilities=("irreversible",), default_action=Action("ring"))
