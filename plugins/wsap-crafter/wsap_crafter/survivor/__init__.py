"""The rule-based agent `crafter-survivor`: a whole Crafter career by memory, maps and a few good habits.

Read in this order:

- `percept`: what is seen, read from one observation (the only module that knows the observation's class);
- `grid`, `knowledge`: the world's geometry, and the game's rules as a player would know them;
- `memory`: the map drawn from what has been seen, and where creatures and plants were;
- `paths`, `moves`: the cheapest way to something (digging and bridging included), and walking it;
- `explore`: where to look for what has not been seen yet;
- `combat`, `shelter`, `needs`, `farm`, `crafting`: one concern each, each a function from state to decision;
- `site`, `homestead`, `living`: a home for life, where it is built, how, and how one lives in it;
- `policy`: the order in which these concerns are asked;
- `outlook`: the same in words;
- `agent`: the interface to the protocol.
"""

from __future__ import annotations

from wsap_core.seams.context import Context

from .agent import Survivor


def create(context: Context) -> Survivor:
    """Return a new agent. It takes nothing from the context: it needs no seed, clock or configuration."""
    return Survivor()


__all__ = ["Survivor", "create"]
