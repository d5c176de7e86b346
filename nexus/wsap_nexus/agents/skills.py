"""The growth of skills from evidence.

A world declares achievements and actions as evidence for domains. Each repetition of the same evidence in the same game
counts half as much as the previous one, so that one source adds at most twice its first gain. The gain also shrinks as
the level approaches 1: `level += rate * (1 - level) / 2**n`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wsap_core.protocol.base import Part
from wsap_core.specs import AdapterSpec
from wsap_nexus.agents.metagoals import Pursuit
from wsap_nexus.store.entities import SessionRecord, SkillGain
from wsap_nexus.worlds.game_info import GameInfo

ACHIEVEMENT_RATE = 0.10
"""The gain of an achievement's first time at level 0."""
ACTION_RATE = 0.01
"""The gain of an action's first time at level 0."""
HALVINGS = 20
"""Number of times after which a source adds nothing."""


def skill_gains(
    declared: Mapping[str, Sequence[str]],
    done: Mapping[str, int],
    *,
    levels: Mapping[str, float],
    shown: Mapping[tuple[str, str], int],
) -> Iterator[SkillGain]:
    """Yield the gains of a session.

    Args:
        declared: domain -> achievements and actions of the game that are evidence.
        done: `achievement:NAME` and `action:NAME` -> successful times in this session.
        levels: domain -> level before, from 0 to 1.
        shown: (domain, source) -> earlier times in this game.
    """
    for domain in sorted(declared):
        level = levels.get(domain, 0.0)
        names = frozenset(declared[domain])
        for source in sorted(done):
            kind, _, name = source.partition(":")
            if name not in names or done[source] < 1:
                continue
            rate = ACHIEVEMENT_RATE if kind == "achievement" else ACTION_RATE
            before = shown.get((domain, source), 0)
            start = level
            for number in range(before, min(before + done[source], HALVINGS)):
                level += rate * (1 - level) / 2**number
            if level > start:
                yield SkillGain(domain, source, done[source], level - start, level)


@dataclass(frozen=True)
class Suggestion(Part):
    """A suggested world."""

    game: str
    score: float
    """From 0 to 1."""
    reasons: Sequence[str] = ()


@dataclass(frozen=True)
class GameEntry(Part):
    """A world in the list of the nexus for an agent."""

    game: str
    name: str
    summary: str
    status: str
    active_agents: int = 0
    capacity: int = 1
    visits: int = 0
    """Sessions of this agent there."""
    avatars: Sequence[str] = ()
    """This agent's avatars there, dead ones included: "avatar-1 (dormant)"."""


def suggestions(
    entries: Sequence[GameEntry],
    infos: Sequence[GameInfo],
    *,
    skills: Mapping[str, float],
    pursuits: Sequence[Pursuit] = (),
    sessions: Sequence[SessionRecord] = (),
    specs: Mapping[str, AdapterSpec] | None = None,
) -> list[Suggestion]:
    """Return suggested worlds for an agent, best first.

    Args:
        entries: the worlds, as listed for this agent.
        infos: their catalogue entries.
        skills: domain -> level from 0 to 1.
        sessions: the agent's last sessions, newest first.
        specs: the games, with their transfer rules.
    """
    domains = {info.id: info.skill_domains for info in infos}
    most = max((entry.visits for entry in entries), default=0)
    found = []
    for entry in entries:
        if entry.status != "available":
            continue
        score, reasons = _by_visits(entry, most)
        exercised = domains.get(entry.game, ())
        for more, reason in (
            _by_goals(entry, exercised, pursuits),
            _by_learning(exercised, skills),
            _by_rules((specs or {}).get(entry.game), skills),
            (0.10, "you have an avatar there") if entry.avatars else (0.0, ""),
            (-0.10, "") if sessions and sessions[0].game == entry.game else (0.0, ""),
        ):
            score += more
            reasons += [reason] if reason else []
        found.append(Suggestion(entry.game, round(min(max(score, 0.0), 1.0), 3), reasons or ["it is available"]))
    return sorted(found, key=lambda suggestion: (-suggestion.score, suggestion.game))


def _by_visits(entry: GameEntry, most: int) -> tuple[float, list[str]]:
    if not entry.visits:
        return 0.35, ["you have never been there"]
    share = 0.15 * (1 - entry.visits / (most + 1))
    return share, (["you have seldom been there"] if 2 * entry.visits < most else [])


def _by_goals(entry: GameEntry, exercised: Sequence[str], pursuits: Sequence[Pursuit]) -> tuple[float, str]:
    for pursuit in pursuits:
        if pursuit.state != "active":
            continue
        anywhere_new = any(r.worlds and r.games == "any" for r in pursuit.goal.requirements)
        if entry.game in pursuit.missing() or (anywhere_new and not entry.visits):
            return 0.25, f"it counts for your goal {pursuit.goal.id!r}"
        wanted = [domain for domain in pursuit.domains() if domain in exercised]
        if wanted:
            return 0.25, f"your goal {pursuit.goal.id!r} needs {wanted[0]}, which you can improve there"
    return 0.0, ""


def _by_learning(exercised: Sequence[str], skills: Mapping[str, float]) -> tuple[float, str]:
    if not exercised:
        return 0.0, ""
    missing = sum(1 - skills.get(domain, 0.0) for domain in exercised) / len(exercised)
    low = sorted(domain for domain in exercised if skills.get(domain, 0.0) < 0.3)
    return 0.20 * missing, f"you can improve {', '.join(low[:3])}" if low else ""


def _by_rules(spec: AdapterSpec | None, skills: Mapping[str, float]) -> tuple[float, str]:
    if spec is None:
        return 0.0, ""
    met = [rule for rule in spec.transfer_rules if skills.get(rule.domain, 0.0) >= rule.threshold]
    return (0.10, f"your {met[0].domain} is an advantage there") if met else (0.0, "")
