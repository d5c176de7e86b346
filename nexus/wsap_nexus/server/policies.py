"""Policies received over the wire API, which must not name files or programs of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.protocol.values import JsonValue
from wsap_core.references import load_agent_spec
from wsap_nexus.http.refusals import ForbiddenError
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.runs.plan import agent_named
from wsap_nexus.server import requests
from wsap_nexus.store.entities import EXTERNAL, Policy

# The last part of an option's name -> what its value names.
_OF_THIS_MACHINE = {"prompts": "a folder", "command": "a program", "cwd": "a folder"}


def read_policies(
    nexus: Nexus, given: Mapping[str, requests.PolicyShape], known: Mapping[str, Policy] | None = None
) -> dict[str, Policy]:
    """Return the policies of a request, by game; the agent's current ones (`known`) may be repeated unchanged.

    Raises:
        ForbiddenError: a policy names a file, a folder or a program.
        UnknownNameError: an agent or game is not installed.
        UsageError: an `external` agent has options.
    """
    found: dict[str, Policy] = {}
    for game, shape in given.items():
        if game not in ("*", "nexus") and game not in (games := [g.id for g in nexus.entrance.games()]):
            raise UnknownNameError("game", game, games)
        agent, model = agent_named(shape.agent, nexus.host)
        if "/" in agent or "\\" in agent or ":" in agent:
            raise ForbiddenError("The wire API accepts the name of an installed agent, not a file of this machine.")
        if agent != EXTERNAL.agent:
            load_agent_spec(agent, nexus.host)
        elif shape.options:
            raise UsageError("An agent that decides over the wire has no options.")
        policy = Policy(agent, {**shape.options, **model})
        if known is None or known.get(game) != policy:
            for name, what in _named_here(policy.options):
                raise ForbiddenError(
                    f"The option {name[:80]} names {what} of this machine, which the wire API does not accept; "
                    "set it where the nexus runs, with: wsap nexus agents"
                )
        found[game] = policy
    return found


def _named_here(options: Mapping[str, JsonValue], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        here = f"{path}.{name}" if path else str(name)
        what = _OF_THIS_MACHINE.get(str(name).rpartition(".")[2])
        if what is not None and value:
            yield here, what
        yield from _in_value(value, here)


def _in_value(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        yield from _named_here(value, path)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in_value(item, path)
    elif isinstance(value, str):
        if value.startswith("@"):
            yield path, "a file"
        elif value.lstrip().startswith(("{", "[")):
            # Text can be the JSON of a table, as on the command line.
            try:
                inside = json.loads(value)
            except (ValueError, RecursionError):
                return
            yield from _in_value(inside, path)
