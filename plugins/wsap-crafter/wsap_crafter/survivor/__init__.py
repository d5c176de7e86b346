"""The rule-based agent `crafter-survivor`, in reading order:

- `percept`: the parsed observation (the only module that depends on the observation's class);
- `grid`, `knowledge`: the world's geometry, and the game's rules;
- `memory`: the map from past observations, with cows and plants;
- `paths`, `moves`: the cheapest path to a goal, including digging and bridging, and walking it;
- `explore`: the choice of unknown regions;
- `combat`, `shelter`, `needs`, `farm`, `crafting`: one concern each, each a function from state to decision;
- `site`, `homestead`, `living`: a permanent home: choosing its site, building it, and living in it;
- `policy`: the priority of these concerns;
- `outlook`: the plan as text;
- `agent`: the interface to the protocol.
"""

from __future__ import annotations

from wsap_core.seams.context import Context
from wsap_crafter.survivor.agent import Survivor


def create(context: Context) -> Survivor:
    """Return a new agent, which uses neither seed, clock nor configuration."""
    return Survivor()


__all__ = ["Survivor", "create"]
