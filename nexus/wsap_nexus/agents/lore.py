"""What an agent keeps in mind in every world: a few core memories and strategies, each with the session it is from.

They are written anew when it comes home, set by the agent in the nexus, and edited by a person; they are bounded in
number and length, and replaced rather than piled up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line
from wsap_nexus.store.entities import AgentIdentity
from wsap_nexus.store.events.agents import KeptInMind
from wsap_nexus.store.nexus_store import Transaction

MOST = 8
"""Maximum number of core memories, and of strategies."""
LONGEST = 200
"""Maximum length of one in characters."""
LEAST_STEPS = 5
"""Minimum number of decisions of a session that is looked back at."""
_LINE = re.compile(r"^\W*(memory|strategy)\W*:\s*(.+)$", re.IGNORECASE)


def keep(
    tx: Transaction,
    agent_id: str,
    *,
    core_memories: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
    session_id: str | None = None,
    game: str | None = None,
) -> None:
    """Replace what an agent keeps in mind, of the kinds given; new lines are from this session, if any.

    Raises:
        UsageError: there are too many lines, or one is too long.
        UnknownNameError: there is no such agent.
    """
    before = tx.agent(agent_id)
    memories = before.core_memories if core_memories is None else _checked("core memories", core_memories)
    ways = before.strategies if strategies is None else _checked("strategies", strategies)
    if (memories, ways) == (before.core_memories, before.strategies):
        return
    known = {line: before.origins.get(line, "") for line in (*before.core_memories, *before.strategies)}
    origins = {line: known.get(line, session_id or "") for line in (*memories, *ways)}
    sources = {line: origin for line, origin in origins.items() if origin}
    lore = {"core_memories": list(memories), "strategies": list(ways), "origins": sources}
    tx.update_agent(agent_id, lore={**tx.lore(agent_id), **lore})
    tx.note(KeptInMind(agent_id=agent_id, session_id=session_id, game=game, core_memories=memories, strategies=ways))


def read_lines(text: str) -> tuple[list[str], list[str]]:
    """Return the core memories and strategies in a model's reply, at most `MOST` of each, cut to `LONGEST`."""
    found: Mapping[str, dict[str, None]] = {"memory": {}, "strategy": {}}
    for line in text.splitlines():
        if match := _LINE.match(line.strip()):
            found[match[1].lower()][single_line(match[2]).strip(" *")[:LONGEST].strip()] = None
    memories, ways = ([line for line in kind if line][:MOST] for kind in found.values())
    return memories, ways


def told(agent: AgentIdentity) -> list[str]:
    """Return what an agent keeps in mind as lines for its prompts, in a fixed order."""
    memories = [f"memory: {single_line(line)[:LONGEST]}" for line in agent.core_memories[:MOST]]
    return memories + [f"strategy: {single_line(line)[:LONGEST]}" for line in agent.strategies[:MOST]]


def _checked(kind: str, lines: Sequence[str]) -> tuple[str, ...]:
    clean = tuple(dict.fromkeys(filter(None, (single_line(line).strip() for line in lines))))
    if len(clean) > MOST:
        raise UsageError(f"An agent keeps at most {MOST} {kind}; there are {len(clean)}. Let go of one first.")
    if long := [line for line in clean if len(line) > LONGEST]:
        raise UsageError(f"One of the {kind} has {len(long[0])} characters; at most {LONGEST} fit: {long[0][:60]!r}.")
    return clean
