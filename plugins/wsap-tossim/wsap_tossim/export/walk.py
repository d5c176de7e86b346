"""Replay a game through the world itself, so that every turn is what its player saw."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace
from wsap_llm.export import ToolUse, legal_actions
from wsap_tossim.engine.game import Game
from wsap_tossim.history import History
from wsap_tossim.options import TownOptions
from wsap_tossim.verbs import TOOLS
from wsap_tossim.world import Town

__all__ = ["Deed", "Source", "Turn", "Walked", "walk"]


@dataclass(frozen=True)
class Deed:
    """An action of a player, in the order in which the world received it."""

    player: int
    action: Action | None
    """A tool or a choice, with the player's reasoning; None for leaving."""
    forced: bool = False
    """Whether it was done for a player who missed the deadline or whose answer was not understood."""
    whole: str | None = None
    """The whole text of a paper afterwards, if the record holds that instead of the addition."""
    sent: Sequence[tuple[str, str]] = ()
    """The prompt of the player's model, from the system message on: role and text of each message. Empty without a
    model, or if unknown."""


@dataclass(frozen=True)
class Source:
    """A game that can be replayed."""

    id: str
    """Its id in exports; reveals nothing about the game."""
    options: TownOptions
    begins: Game
    """The game before anything was chosen."""
    deeds: Sequence[Deed]
    played_by: Sequence[str]
    """Who played each seat; empty if unknown."""
    styles: Sequence[str] = ()
    """Reply style of each seat's model (`json` or `tags`); empty if no model is known to have played."""


@dataclass(frozen=True)
class Turn:
    """One turn of one player, from the question to the choice."""

    player: int
    number: int
    """Counted by the player's own turns, from 0."""
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
    """The prompt at the beginning of the turn; see `Deed.sent`."""


@dataclass(frozen=True)
class Walked:
    """The result of replaying a game."""

    game: Game
    """The game at the end."""
    spaces: Sequence[ActionSpace]
    """Each player's actions, as it was told of them at the beginning."""
    descriptions: Sequence[str]
    """Each player's description of the game and its role at the beginning."""
    turns: Sequence[Turn]
    """In the order in which they ended."""


@dataclass
class _Open:
    """A turn that has begun."""

    shown: str
    day: int
    phase: str
    legal: Sequence[ActionDef]
    sent: Sequence[tuple[str, str]]
    uses: list[ToolUse] = field(default_factory=list)


def walk(source: Source) -> Walked:
    """Replay a game, and return each turn as its player saw it.

    It runs an event loop of its own, so it can't be called from a coroutine.

    Raises:
        SnapshotError: the game can't be begun.
    """
    return asyncio.run(_walk(source))


async def _walk(source: Source) -> Walked:
    # As the history of a town, since its roles may not have been dealt by its seed.
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
        """Carry out an action, and store the turn that it ends."""
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
        await asyncio.sleep(0)  # it runs until it waits for others, or has its answer
        if deed.action.name in TOOLS:
            opened.uses.append(ToolUse(deed.action, (await asked).message))
            return
        if asked.done() and not asked.result().success:
            del self._open[player]  # the world refused it, and asked again
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
            self._open[player] = _Open(
                seen.to_text(), day, phase, legal_actions(self._town.action_space, seen), deed.sent
            )
        return self._open[player]

    async def stop(self) -> None:
        """Cancel whatever still waits."""
        for task in self._waiting:
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)


_PAPERS: Mapping[str, str] = {"write_will": "will", "write_death_note": "note", "notebook": "notebook"}
