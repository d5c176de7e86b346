"""Replay a game through the world, so that every turn is what its player saw."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace
from wsap_llm.export import ToolUse, legal_actions, not_looked_up
from wsap_tossim.engine.game import Game
from wsap_tossim.history import History
from wsap_tossim.options import TownOptions
from wsap_tossim.verbs import TOOLS
from wsap_tossim.world import Town

__all__ = ["Deed", "Source", "Turn", "Walked", "walk"]


@dataclass(frozen=True)
class Deed:
    """A player's action, in the order in which the world received it."""

    player: int
    action: Action | None
    """A tool or a choice, with the player's reasoning; None if the player leaves."""
    forced: bool = False
    """Whether it was done for a player after a missed deadline or unreadable reply."""
    whole: str | None = None
    """The resulting text of a paper, if the record has that instead of the addition."""
    sent: Sequence[tuple[str, str]] = ()
    """The prompt of the player's model: role and text of each message; empty without a model, or if unknown."""


@dataclass(frozen=True)
class Source:
    """A game that can be replayed."""

    id: str
    """Its id in exports, which reveals nothing about the game."""
    options: TownOptions
    begins: Game
    """The game before the first choice."""
    deeds: Sequence[Deed]
    played_by: Sequence[str]
    """Who played each seat; empty if unknown."""
    styles: Sequence[str] = ()
    """Reply style of each seat's model (`json` or `tags`); empty without a known model."""


@dataclass(frozen=True)
class Turn:
    """One turn of one player, from the question to the choice."""

    player: int
    number: int
    """Number among the player's turns, from 0."""
    day: int
    phase: str
    """As the player sees it."""
    shown: str
    """The turn as a model reads it."""
    legal: Sequence[ActionDef]
    """Legal actions, tools included, with their possible targets."""
    uses: Sequence[ToolUse]
    action: Action
    forced: bool
    sent: Sequence[tuple[str, str]] = ()
    """The prompt at the start of the turn; see `Deed.sent`."""


@dataclass(frozen=True)
class Walked:
    """The result of replaying a game."""

    game: Game
    """The game at the end."""
    spaces: Sequence[ActionSpace]
    """Each player's action space at the start."""
    descriptions: Sequence[str]
    """Each player's description of the game and its role at the start."""
    turns: Sequence[Turn]
    """In order of their end."""


@dataclass
class _Open:
    shown: str
    day: int
    phase: str
    legal: Sequence[ActionDef]
    sent: Sequence[tuple[str, str]]
    uses: list[ToolUse] = field(default_factory=list)


def walk(source: Source) -> Walked:
    """Replay a game, and return each turn as its player saw it.

    It runs its own event loop, so it can't be called from a coroutine.

    Raises:
        SnapshotError: the game can't be started.
    """
    return asyncio.run(_walk(source))


async def _walk(source: Source) -> Walked:
    # as a history, since its roles may not come from its seed
    history = History(source.begins, source.options.names, source.options.given)
    town = Town(replace(source.options, history=history), source.begins.seed)
    faces = [town.seat(seat) for seat in town.seats]
    spaces, descriptions = [face.action_space for face in faces], [face.game_description for face in faces]
    walker = _Walker(town)
    try:
        for deed in source.deeds:
            if town.game.over:
                break
            await walker.take(deed)
    finally:
        await walker.stop()
    return Walked(town.game, spaces, descriptions, walker.turns)


class _Walker:
    def __init__(self, town: Town) -> None:
        self.turns: list[Turn] = []
        self._town = town
        self._open: dict[int, _Open] = {}
        self._taken: dict[int, int] = {}
        self._waiting: list[asyncio.Task[ActionResult]] = []

    async def take(self, deed: Deed) -> None:
        """Carry out an action; store the turn if the action ends it."""
        town, player = self._town, deed.player
        seat = town.seats[player]
        if deed.action is None:
            town.leave(seat)
            return
        opened = self._opened(deed)
        if deed.whole is not None:
            refused = town.game.write(player, _PAPERS[deed.action.name], deed.whole)
            opened.uses.append(ToolUse(deed.action, refused or "Written."))
            return
        asked = asyncio.create_task(town.play(seat, deed.action))
        await asyncio.sleep(0)  # it runs until it waits for others or has its result
        if deed.action.name in TOOLS:
            opened.uses.append(ToolUse(deed.action, (await asked).message))
            return
        if asked.done() and not asked.result().success:
            del self._open[player]  # the world refused it and asks again
            return
        self._waiting = [task for task in self._waiting if not task.done()] + [asked]
        del self._open[player]
        number = self._taken.get(player, 0)
        self._taken[player] = number + 1
        self.turns.append(
            Turn(
                player, number, opened.day, opened.phase, opened.shown, opened.legal, tuple(opened.uses),
                replace(deed.action), deed.forced, opened.sent,
            )
        )  # fmt: skip

    def _opened(self, deed: Deed) -> _Open:
        player = deed.player
        if player not in self._open:
            seen = self._town.observation(self._town.seats[player])
            day, phase = int(str(seen.status["day"])), str(seen.status["phase"])
            legal = legal_actions(self._town.action_space, seen)
            missing = not_looked_up(self._town.seat(self._town.seats[player]).action_space, legal)
            shown = "\n\n".join(filter(None, (seen.to_text(), missing)))
            self._open[player] = _Open(shown, day, phase, legal, deed.sent)
        return self._open[player]

    async def stop(self) -> None:
        """Cancel all waiting tasks."""
        for task in self._waiting:
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)


_PAPERS: Mapping[str, str] = {"write_will": "will", "write_death_note": "note", "notebook": "notebook"}
