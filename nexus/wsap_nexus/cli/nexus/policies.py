"""Arguments of the commands about agents: ids, policies, tokens and texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.params import pairs
from wsap_core.errors import UsageError

if TYPE_CHECKING:
    from wsap_nexus.store.entities import Policy
    from wsap_nexus.store.nexus_store import NexusStore


def check_id(name: str) -> None:
    """Refuse an invalid agent id, in the same words whether a nexus is running or not.

    Raises:
        UsageError: it is invalid.
    """
    import re

    from wsap_nexus.store.entities import AGENT_ID

    if re.fullmatch(AGENT_ID, name) is None:
        raise UsageError(
            f"{name[:80]!r} can't be an agent's id; use up to 64 of a-z, 0-9, dot, dash and underscore, "
            "beginning with a letter or digit. --title sets its display name."
        )


def policies_of(model: str | None, memory: str | None, given: tuple[str, ...]) -> dict[str, Policy]:
    """Return game -> policy from the options, checked.

    Raises:
        UnknownNameError: there is no such agent, game or backend.
        UsageError: `--memory` without `--model`.
    """
    from wsap_core.host import PluginHost
    from wsap_core.references import load_adapter_spec, load_agent_spec
    from wsap_llm.backends.pool import find_backend
    from wsap_nexus.runs.plan import agent_named
    from wsap_nexus.store.entities import EXTERNAL, Policy

    host = PluginHost.discovered()
    found: dict[str, Policy] = {}
    if memory is not None and model is None:
        raise UsageError("--memory has no effect without a language model; name one with --model ADDRESS.")
    if model is not None:
        find_backend(host, model)
        if memory is not None and memory != "none":
            host.memories.get(memory)
        found["*"] = Policy("llm", {"model": model, **({"memory": memory} if memory else {})})
    for game, agent in pairs("--policy", given, example="GAME=AGENT").items():
        if game not in ("nexus", "*"):
            load_adapter_spec(game, host)
        agent, options = agent_named(agent, host)
        if agent != EXTERNAL.agent:
            load_agent_spec(agent, host)
        found[game] = Policy(agent, options)
    return found if "*" in found or "nexus" in found else {"nexus": Policy("wanderer"), **found}


def is_external(policies: dict[str, Policy]) -> bool:
    """Return whether a client decides over HTTP in some game."""
    return any(policy.external for policy in policies.values())


def issue_token(nexus_store: NexusStore, name: str) -> str:
    """Return a new token of an agent."""
    from wsap_nexus.http.auth import Tokens

    return Tokens(nexus_store, "").issue(name)


def text_of(given: str) -> str:
    """Return a text as it was typed, or the content of the file in `@FILE`.

    Raises:
        UsageError: the file can't be read.
    """

    if not given.startswith("@"):
        return given
    path = Path(given[1:]).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"The persona can't be read from {path}: {reason}.") from None


def said(as_json: bool, text: str, **facts: Any) -> None:
    """Print a sentence, or with `--json` the facts in it."""
    click.echo(json.dumps(facts) if as_json else text)
