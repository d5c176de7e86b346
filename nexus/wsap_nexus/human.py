"""The agent `human`: a person at the terminal."""

from __future__ import annotations

import asyncio
import sys
from typing import Protocol, runtime_checkable

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.seams.context import Context
from wsap_core.untrusted import single_line, strip_control
from wsap_llm.reply.schema import legal_actions
from wsap_nexus.terminal.keyboard.keymap import typed_choice
from wsap_nexus.terminal.keyboard.keys import has_keyboard

_WORDS = {"failed": "Failed: ", "unknown": "Outcome unknown: "}


@runtime_checkable
class Chooser(Protocol):
    """Asks a person for actions; the live view is one."""

    async def choose(self, seat: str, observation: Observation, space: ActionSpace) -> Action:
        """Return the person's action."""
        ...


class HumanAgent:
    """Lets a person decide."""

    def __init__(self, chooser: Chooser, seat: str) -> None:
        self._chooser = chooser
        self._seat = seat
        self._space = ActionSpace()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Keep the declared actions."""
        self._space = action_space
        if isinstance(self._chooser, LineChooser):
            self._chooser.say(game_desc)

    async def decide(self, observation: Observation) -> Action:
        """Return the person's action."""
        return await self._chooser.choose(self._seat, observation, self._space)

    def reflect(self, result: ActionResult) -> None:
        """Show the result, on a line terminal."""
        if isinstance(self._chooser, LineChooser):
            self._chooser.say(_WORDS.get(result.outcome, "" if result.success else "Refused: ") + result.message)

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return no plan."""
        return []


class LineChooser:
    """Asks line by line, for scripts and terminals that can't show the live view."""

    def say(self, text: str) -> None:
        """Show a text, sanitized for terminals."""
        print(strip_control(text).strip(), file=sys.stderr, flush=True)  # noqa: T201

    async def choose(self, seat: str, observation: Observation, space: ActionSpace) -> Action:
        """Show the observation, and ask until the person enters a legal action; UsageError at the end of input."""
        self.say(observation.to_text())
        possible = ", ".join(action.name for action in legal_actions(space, observation))
        self.say(f"{single_line(seat)}, what do you do? {possible}")
        while True:
            line = await _read_line()
            if not line:
                raise UsageError("The agent 'human' can't ask for an action: the standard input has ended.")
            action, reason = typed_choice(line, space, observation)
            if action is not None:
                return action
            self.say(reason)


def create(context: Context) -> HumanAgent:
    """Return the agent for the person at this terminal; UsageError if there is no terminal."""
    seat = context.agent_id or ""
    chooser: object = context.services.views
    if isinstance(chooser, Chooser):
        return HumanAgent(chooser, seat)
    if not has_keyboard():
        raise UsageError("The agent 'human' needs a terminal as standard input; choose another --agent.")
    return HumanAgent(LineChooser(), seat)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def _read_line() -> str:
    # Not blocking, for the sake of Ctrl-C and other seats.
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        return await loop.run_in_executor(None, sys.stdin.readline)
    ready: asyncio.Future[None] = loop.create_future()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return sys.stdin.readline()
