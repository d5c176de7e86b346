"""Validates, stores and logs the persona and policies of an agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wsap_core.errors import UnknownNameError, UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol.wire import encode
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.specs import OptionDef, part_options
from wsap_core.untrusted import single_line
from wsap_llm.backends.pool import ModelPool, find_backend
from wsap_llm.secrets import redacted
from wsap_nexus.agents import lore
from wsap_nexus.agents.messages import set_team
from wsap_nexus.runs.plan import SeatPlan, agent_named
from wsap_nexus.store.entities import EXTERNAL, AgentIdentity, Policy
from wsap_nexus.store.events.agents import AgentRenamed, PersonaChanged, PolicyChanged
from wsap_nexus.store.nexus_store import Transaction

LONGEST = 10_000
"""Maximum characters of a persona."""
LONGEST_OPTIONS = 100_000
"""Maximum characters of a policy's options as JSON."""
EVERYWHERE = ("nexus", "*")
"""Scopes of a policy besides games."""
MODEL_SECONDS = 20.0
"""Maximum seconds for a model to become ready when it is assigned to an agent."""
WITH_PERSONA = ("llm",)
"""Agents with an option `persona`."""
_PARTS = {"model.KEY": "backend", "memory.KEY": "memory", "TOOL.KEY": "tool"}
# What an agent declares that passes options to its parts -> the part.


def set_persona(tx: Transaction, agent_id: str, text: str) -> None:
    """Set an agent's persona; it takes effect in the next session.

    Raises:
        UsageError: it is too long.
        UnknownNameError: there is no such agent.
    """
    if len(text) > LONGEST:
        raise UsageError(f"A persona may have at most {LONGEST} characters; this one has {len(text)}.")
    before = tx.agent(agent_id)
    if text.strip() != before.persona:
        tx.update_agent(agent_id, persona=text.strip())
        tx.note(PersonaChanged(agent_id=agent_id, persona=text.strip(), before=before.persona))


def set_policy(tx: Transaction, agent_id: str, game: str, policy: Policy | None, host: PluginHost) -> None:
    """Set the policy of an agent in a game, in the "nexus", or in all others ("*"); None removes it.

    Raises:
        UnknownNameError: there is no such agent or game.
        UsageError: the options are too large, or not JSON.
        PluginError: the policy's agent can't be loaded.
    """
    known = tx.agent(agent_id)
    if game not in EVERYWHERE and game not in known.policies:
        load_adapter_spec(game, host)
    policies = {name: _recorded(kept) for name, kept in known.policies.items()}
    if policy is None:
        policies.pop(game, None)
        tx.note(PolicyChanged(agent_id=agent_id, game=game, policy=None))
    else:
        agent, model = agent_named(policy.agent, host)
        policy = Policy(agent, {**policy.options, **model})
        if agent != EXTERNAL.agent:
            load_agent_spec(agent, host)
        policies[game] = _recorded(policy)
        tx.note(PolicyChanged(agent_id=agent_id, game=game, policy=policies[game]))
    tx.update_agent(agent_id, policies=policies)


def change(
    tx: Transaction,
    agent_id: str,
    host: PluginHost,
    *,
    name: str | None = None,
    persona: str | None = None,
    policies: Mapping[str, Policy] | None = None,
    team: str | None = None,
    core_memories: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
) -> AgentIdentity:
    """Change what is given of an agent, and return it; policies and persona apply from its next session on.

    Policies, core memories and strategies replace all earlier ones. An empty name becomes the id; an empty persona or
    team is removed.

    Raises:
        UsageError, UnknownNameError, PluginError: see `set_persona`, `set_policy`, `set_team` and `lore.keep`.
    """
    before = tx.agent(agent_id)
    if name is not None:
        tx.update_agent(agent_id, name=name or agent_id)
        tx.note(AgentRenamed(agent_id=agent_id, name=name or agent_id, before=before.name))
    if persona is not None:
        set_persona(tx, agent_id, persona)
    lore.keep(tx, agent_id, core_memories=core_memories, strategies=strategies)
    if team is not None:
        set_team(tx, agent_id, team or None)
    if policies is not None:
        for game in sorted(before.policies.keys() - policies.keys()):
            set_policy(tx, agent_id, game, None, host)
        for game, policy in policies.items():
            set_policy(tx, agent_id, game, policy, host)
    return tx.agent(agent_id)


async def check_models(policies: Iterable[Policy], host: PluginHost) -> None:
    """Raise UsageError, with the reason, if a policy's model is not available; no reply is requested."""
    for policy in policies:
        if policy.agent != "llm" or not (address := policy.options.get("model")):
            continue
        try:
            async with ModelPool(host) as models, asyncio.timeout(MODEL_SECONDS):
                await models.open(str(address), policy.options)
        except (WsapError, TimeoutError) as error:
            why = str(error) or f"it is not ready within {MODEL_SECONDS:g} s"
            raise UsageError(f"The model {single_line(str(address))[:80]} can't be used: {single_line(why)}") from error


def refuse_undeclared(policy: Policy, host: PluginHost) -> None:
    """Raise UsageError, with the closest name, if a policy has an option that its agent does not declare.

    An agent that declares no options at all is not judged.
    """
    declared = [option.name for option in load_agent_spec(policy.agent, host).options]
    for name in policy.options if declared else ():
        if declared_option(policy, name, host) is None:
            shown = single_line(name)[:60]
            raise UnknownNameError(f"option of {policy.agent}", shown, [n for n in declared if n not in _PARTS])


def declared_option(policy: Policy, name: str, host: PluginHost) -> OptionDef | None:
    """Return what the agent of a policy, or one of its parts, declares of an option; None if it declares nothing."""
    own = {known.name: known for known in load_agent_spec(policy.agent, host).options}
    part, dot, key = name.partition(".")
    if not dot:
        return own.get(name)
    kind = _PARTS.get(f"{part}.KEY", "tool")
    if not any(_PARTS.get(known) == kind for known in own):
        return None
    return _of_part(kind, part, policy.options, host).get(key)


def _of_part(kind: str, name: str, options: Mapping[str, Any], host: PluginHost) -> dict[str, OptionDef]:
    if kind == "backend":
        return part_options(find_backend(host, str(options.get("model") or ""))[0])
    if kind == "memory":
        return part_options(host.memories.get(str(options.get("memory") or "none")))
    return part_options(host.tools.get(name))


def seat_plan(name: str, agent: AgentIdentity | None, game: str, default: str) -> SeatPlan:
    """Return the plan of a seat in a game or the "nexus", with the agent's persona if its policy takes one, and in a
    game with what it keeps in mind, which it sees in the nexus anyway.

    Without a policy, or an agent of the nexus, `default` decides.
    """
    policy = (agent.policy(game) if agent is not None else None) or Policy(default)
    options = dict(policy.options)
    if agent is not None and policy.agent in WITH_PERSONA and not options.get("persona"):
        kept = lore.told(agent) if game != "nexus" else []
        in_mind = "\n".join(["You keep in mind:", *(f"- {line}" for line in kept)]) if kept else ""
        if persona := "\n\n".join(filter(None, (agent.persona, in_mind))):
            # A value that begins with @ names a file.
            options["persona"] = f" {persona}" if persona.startswith("@") else persona
    return SeatPlan(name, policy.agent, options)


def policies_of(seat: SeatPlan) -> dict[str, Policy]:
    """Return the policies of a new agent: the model of the seat, else the default agent of each game."""
    if seat.agent in WITH_PERSONA and "model" in seat.options:
        return {"*": Policy(seat.agent, {n: v for n, v in seat.options.items() if n != "persona"})}
    return {"nexus": Policy("wanderer")}


def _recorded(policy: Policy) -> dict[str, Any]:
    try:
        options = json.dumps(encode(redacted(policy.options)))
    except (TypeError, ValueError) as error:
        raise UsageError(f"The options of {policy.agent!r} are not JSON: {error}.") from error
    if len(options) > LONGEST_OPTIONS:
        raise UsageError(f"The options of {policy.agent!r} are too large: at most {LONGEST_OPTIONS} characters.")
    return {"agent": policy.agent, "options": json.loads(options)}
