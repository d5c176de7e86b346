"""All about one agent, as JSON or as lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from wsap_core.protocol.wire import encode
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import plural
from wsap_nexus.cli.nexus.report import agent_row, session_of
from wsap_nexus.hub.reconciliation import unresolved_transfers
from wsap_nexus.store.events import why_ended
from wsap_nexus.store.nexus_store import Transaction

# Any, in this module: JSON-ready data.


def agent_report(tx: Transaction, name: str) -> dict[str, Any]:
    """Return all that is stored about an agent, JSON-ready.

    Raises:
        UnknownNameError: there is no such agent.
    """
    agent = tx.agent(name)
    return {
        **asdict(agent_row(tx, agent, session_of(tx, agent))),
        "created": agent.created,
        "persona": agent.persona,
        "policies": {g: {"agent": p.agent, "options": dict(p.options)} for g, p in sorted(agent.policies.items())},
        "playtime": agent.playtime,
        "skills": tx.skills(name),
        "evidence": [dict(row._mapping) for row in tx.evidence(name)],
        "achievements": [dict(row._mapping) for row in tx.achievements(name)],
        "items": [
            {"item": encode(r.item), "place": r.place, "place_id": r.place_id, "note": r.note} for r in tx.items(name)
        ],
        "bodies": [{"world": b.world_id, "game": b.game, "avatar": encode(b.avatar)} for b in tx.avatars(name)],
        "in_doubt": [asdict(move) for move in unresolved_transfers(tx, name)],
        "sessions": [encode(session) for session in tx.sessions(agent_id=name, limit=20)],
    }


def report_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the same as lines for a person."""
    where = f"in {found['place']}" + (f", {plural(found['steps'], 'decision')} so far" if found["session"] else "")
    state = "" if found["state"] == "active" else f", {found['state']}"
    lines = [f"{found['name']} ({found['id']}), {where}{state}"]
    if found["persona"]:
        lines.append(found["persona"])
    lines.append(f"{plural(found['lifetime_steps'], 'decision')} in games, {found['playtime']:.0f} seconds; "
                 f"created {found['created'][:10]}")  # fmt: skip
    deciders = [f"{game}: {_decider(policy)}" for game, policy in found["policies"].items()]
    lines.append("decided by: " + (", ".join(deciders) or "each game's default agent"))
    skills = sorted(found["skills"].items(), key=lambda pair: -pair[1])
    lines.append("skills: " + (", ".join(f"{name} {level:.2f}" for name, level in skills) or "none yet"))
    for title, entries in (
        ("achievements", [f"{a['name']} ({a['game']})" for a in found["achievements"]]),
        ("items", [f"{i['item']['name']} ({i['place']})" for i in found["items"] if i["place"] != "lost"]),
        ("avatars", [f"{b['avatar']['avatar_id']} in {b['world']}, {b['avatar']['state']}" for b in found["bodies"]]),
    ):
        if entries:
            lines.append(f"{title}: {', '.join(entries)}")
    lines += [
        f"unresolved transfer: {move['transfer']} to {move['game']} with {plural(len(move['items']), 'item')}: "
        f"{move['why']} (decide with: wsap nexus agents settle {found['id']} --as arrived|returned)"
        for move in found["in_doubt"]
    ]
    if found["sessions"]:
        lines.append("last sessions:")
    for session in found["sessions"][:5]:
        ended = why_ended(session["reason"]) if session["closed"] else "still there"
        steps = plural(session["steps"], "decision") if session["closed"] else "open"
        lines.append(f"  {session['opened'][:16].replace('T', ' ')}  {session['game']}: {steps}, {ended}"
                     f"  (wsap replay {session['run_id']})")  # fmt: skip
    return [single_line(line) if not line.startswith("  ") else "  " + single_line(line) for line in lines]


def _decider(policy: Mapping[str, Any]) -> str:
    return str(policy["options"].get("model") or policy["agent"])
