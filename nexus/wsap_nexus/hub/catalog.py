"""Which games there are for agents to enter: those installed, in files, and in other processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from wsap_core.errors import PluginError, WsapError
from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.loading import names_object
from wsap_core.protocol.wire import Codec
from wsap_core.references import load_adapter_spec
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.elsewhere import Elsewhere
from wsap_nexus.hub.standing import Standings
from wsap_nexus.worlds.game_info import GameInfo


class Catalog:
    """The games of a nexus.

    Args:
        host: where installed games come from.
        wanted: the games that agents may enter; None for all that are installed.
        elsewhere: games in other processes.
        standings: which of them may be entered now.
    """

    def __init__(
        self, host: PluginHost, wanted: tuple[str, ...] | None, elsewhere: Elsewhere, standings: Standings
    ) -> None:
        self.known: dict[str, AdapterSpec] = {}
        """Games in this process that were looked at, by name and by reference."""
        self._host = host
        self._wanted = wanted
        self._elsewhere = elsewhere
        self._standings = standings

    def spec(self, game: str) -> AdapterSpec:
        """Return a game.

        Raises:
            UnknownNameError: there is none of that name.
            PluginError: it can't be loaded.
        """
        if game in self._elsewhere.specs():
            return self._elsewhere.specs()[game]
        for reference in self._wanted or ():
            # One in a file is known by its own name, too, once it has been looked at.
            if reference not in self.known and names_object(reference):
                spec = load_adapter_spec(reference, self._host)
                self.known[reference] = self.known[spec.name] = spec
        if game not in self.known:
            self.known[game] = load_adapter_spec(game, self._host)
        return self.known[game]

    def infos(self, active: Mapping[str, int], busy: Callable[[AdapterSpec], bool]) -> list[GameInfo]:
        """Return what is known of every game that can be entered.

        Args:
            active: how many agents are in each.
            busy: whether there is no world for one more.
        """
        found = []
        names = self._wanted or tuple(self._host.games.names())
        for name in (*names, *(n for n in self._elsewhere.specs() if n not in names)):
            try:
                spec = self.spec(name)
            except WsapError:
                continue
            info = GameInfo.of(spec)
            standing = self._standings.of(info.id).status
            status = "busy" if standing == "available" and busy(spec) else standing
            found.append(replace(info, active_agents=active.get(info.id, 0), status=status))
        return found


def codec_of(spec: AdapterSpec) -> Codec:
    """Return what reads a game's recorded messages.

    Raises:
        WorldFailedError: its types can't be loaded.
    """
    try:
        return Codec([load(reference) for reference in spec.wire_types])
    except PluginError as error:
        raise WorldFailedError(f"The game {spec.name!r} can't be loaded: {error}") from error
