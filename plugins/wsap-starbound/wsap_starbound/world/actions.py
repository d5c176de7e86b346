"""The action space, and what of it is possible now."""

from __future__ import annotations

import tomllib
from importlib import resources

from pydantic import TypeAdapter

from wsap_core.protocol import ActionAvailability, ActionSpace
from wsap_core.protocol.availability import Possible
from wsap_core.worlds.legality import index_actions
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules.table import RULES

ACTION_SPACE = TypeAdapter(ActionSpace).validate_python(
    tomllib.loads(resources.files(__package__).joinpath("actions.toml").read_text("utf-8"))
)
DECLARED = index_actions(ACTION_SPACE)


def availability(world: Universe, being: Being, over: str = "") -> list[ActionAvailability]:
    """Return which actions are possible now and with which words; none if something is `over`."""
    found: list[ActionAvailability] = []
    for name in ACTION_SPACE.names:
        offer = over or RULES[name].offer(world, being)
        if isinstance(offer, str):
            found.append(ActionAvailability(name, False, offer))
        else:
            choices = {key: tuple(words) for key, words in offer.items() if words}
            found.append(Possible(name, choices=choices) if choices else ActionAvailability(name))
    return found
