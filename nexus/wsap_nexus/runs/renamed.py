"""Finds the names under which a game's runs and rows may be recorded: its own and those that it had before."""

from __future__ import annotations

from wsap_core.errors import WsapError
from wsap_core.host import PluginHost
from wsap_core.specs import AdapterSpec


def former_names(game: AdapterSpec, host: PluginHost) -> list[str]:
    """Return the former names of an installed game that mean it still, for a member of a family with the member."""
    member = game.name.partition(":")[2]
    found = [f"{old}:{member}" if member else old for old in game.former_names]
    return [old for old in found if _means(old, game.name, host)]


def names_of(game: str, host: PluginHost) -> tuple[str, ...]:
    """Return the names of an installed game, the given one first, by whichever of them it is given.

    A name that no installed game has, or several have, stands for itself.
    """
    try:
        spec = host.games.get(game)
    except WsapError:
        return (game,)
    return tuple(dict.fromkeys((game, spec.name, *former_names(spec, host))))


def _means(name: str, game: str, host: PluginHost) -> bool:
    try:
        return host.games.get(name).name == game
    except WsapError:
        return False  # several games claim it
