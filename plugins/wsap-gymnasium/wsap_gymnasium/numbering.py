"""A fixed numbering of a game's actions with their parameters, and which of them are possible now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from wsap_core.protocol import Action, ActionAvailability, ActionDef, ActionSpace, Observation, ParamDef, Possible

# Any, in this module: values of parameters.

MOST_EACH = 1000
"""Maximum number of numbered actions of one declared action; of more, it is left out."""


class Numbering:
    """The actions of a game that can be numbered, in the order of its action space.

    Free text, fractions and objects can't be numbered: an action that needs such a parameter is in `left_out`, and an
    optional one is never given.
    """

    def __init__(self, space: ActionSpace) -> None:
        found = [(definition, list(_numbered(definition))) for definition in space.listed().actions]
        self.actions: tuple[Action, ...] = tuple(action for _, actions in found for action in actions)
        """Number -> action."""
        self.left_out: tuple[str, ...] = tuple(definition.name for definition, actions in found if not actions)
        """Names of the actions that can't be numbered."""

    def __len__(self) -> int:
        return len(self.actions)

    def mask(self, observation: Observation) -> npt.NDArray[np.int8]:
        """Return for each number 1 if it is possible now, else 0; all are if the observation does not say."""
        if observation.available_actions is None:
            return np.ones(len(self.actions), np.int8)
        offered = {each.name: each for each in observation.available_actions}
        return np.array([_may(action, offered.get(action.name)) for action in self.actions], np.int8)


def _may(action: Action, offer: ActionAvailability | None) -> bool:
    if offer is None or not offer.available:
        return False
    choices: Mapping[str, Sequence[str]] = offer.choices if isinstance(offer, Possible) else {}
    return all(str(value) in choices[name] for name, value in action.parameters.items() if name in choices)


def _numbered(definition: ActionDef) -> Iterator[Action]:
    """Yield an action with each combination of its parameters; nothing if there are too many or infinitely many."""
    needed = [_values(parameter) for parameter in definition.parameters if not parameter.optional]
    names = [parameter.name for parameter in definition.parameters if not parameter.optional]
    count = 1
    for values in needed:
        count *= 0 if values is None else len(values)
    if 0 < count <= MOST_EACH:
        for chosen in product(*(values or () for values in needed)):
            yield Action(definition.name, dict(zip(names, chosen, strict=True)))


def _values(parameter: ParamDef) -> Sequence[Any] | None:
    schema = parameter.json_schema()
    if "enum" in schema:
        return list(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return [False, True]
        case "integer" if "minimum" in schema and "maximum" in schema:
            return range(int(schema["minimum"]), int(schema["maximum"]) + 1)
    return None
