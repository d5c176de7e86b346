"""The games that agents can enter now, and the check of whoever wants to."""

from __future__ import annotations

from collections import Counter

from wsap_core.errors import UnknownNameError
from wsap_core.specs import AdapterSpec
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.errors import GameUnavailableError, IncompatibleGameError
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.room import Room
from wsap_nexus.hub.transit import prepare_enter
from wsap_nexus.store.entities import Terms
from wsap_nexus.worlds.game_info import GameInfo


class Entrance:
    """The games of a running nexus as agents meet them.

    Args:
        context: of the nexus.
        room: whether games have a free world.
    """

    def __init__(self, context: HubContext, room: Room) -> None:
        self._context = context
        self._room = room

    def games(self) -> list[GameInfo]:
        """Return what is known of every game that can be entered."""
        active = Counter(stay.session.game for stay in self._context.live.stays.values())
        return self._context.catalog.infos(active, self._room.busy)

    def specs(self) -> dict[str, AdapterSpec]:
        """Return every game that can be entered, by name."""
        return {info.id: self._context.catalog.spec(info.id) for info in self.games()}

    def game_info(self, game: str) -> GameInfo:
        """Return what is known of a game.

        Raises:
            UnknownNameError: there is none of that name.
        """
        games = self.games()
        for info in games:
            if info.id == game:
                return info
        raise UnknownNameError("world", game, [g.id for g in games])

    def request_enter(self, agent_id: str, game: str, terms: Terms) -> str:
        """Prepare an agent's way into a game, and return what to tell it.

        Raises:
            UnknownNameError: there is no such game or agent.
            TransitError: it can't go there now.
        """
        info = self.game_info(game)
        if info.status == "busy":
            self._room.check(self._context.catalog.spec(info.id))
        elif info.status != "available":
            reason = self._context.standings.of(info.id).reason
            raise GameUnavailableError(f"{info.name} is {info.status}{': ' if reason else ''}{reason or '.'}")
        if info.protocol_version.split(".")[0] != PROTOCOL_VERSION.split(".")[0]:
            raise IncompatibleGameError(
                f"{info.name} speaks version {info.protocol_version} of the protocol, the nexus {PROTOCOL_VERSION}."
            )
        with self._context.ledger.change() as book:
            way = prepare_enter(book, agent_id, self._context.catalog.spec(game), terms)
        self._context.live.ways[agent_id] = way
        return f"You are on your way to {info.name}."
