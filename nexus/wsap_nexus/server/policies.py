"""Policies received over the wire API, which must not name files, programs, secrets or servers."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.host import PluginHost
from wsap_core.references import load_agent_spec
from wsap_core.specs import part_options
from wsap_core.untrusted import single_line
from wsap_llm.backends.pool import find_backend
from wsap_nexus.agents.identity import declared_option
from wsap_nexus.http.refusals import ForbiddenError
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.runs.plan import agent_named
from wsap_nexus.server.bodies import requests
from wsap_nexus.store.entities import EXTERNAL, Policy
from wsap_nexus.worlds.local_options import ELSEWHERE, can_be_path, check_value, refused


def read_policies(
    nexus: Nexus, given: Mapping[str, requests.PolicyShape], known: Mapping[str, Policy] | None = None
) -> dict[str, Policy]:
    """Return the policies of a request, by game; the agent's current ones (`known`) may be repeated unchanged.

    Raises:
        ForbiddenError: a policy names a file, a folder, a program, a secret or a server, or has an option that is not
            declared.
        UnknownNameError: an agent, a game or a part of an agent is not installed.
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
            check_options(policy, nexus.host)
        found[game] = policy
    return found


def check_options(policy: Policy, host: PluginHost) -> None:
    """Raise ForbiddenError unless the agent or one of its parts declares each option of a policy, and none names a
    file, a program, a secret or a server."""
    for name, value in policy.options.items():
        known = declared_option(policy, name, host)
        check_value(known, name, value, ELSEWHERE)
        if known is None:
            raise ForbiddenError(
                f"The option {single_line(name)[:80]} is declared by no part of the agent {policy.agent!r}, and such "
                f"an option can't be set over HTTP. Correct its name, or {ELSEWHERE}"
            )
        if known.names == "model" and value:
            _check_model(name, str(value), host)


def _check_model(option: str, address: str, host: PluginHost) -> None:
    """Refuse the address of a model that is a file or folder."""
    spec, model = find_backend(host, address)
    known = part_options(spec).get("model")
    if known is not None and known.names == "path" and can_be_path(model):
        raise refused(option, "a file or folder of this machine", ELSEWHERE)
