"""Meta-goals: goals of an agent across worlds, counted from the events of the nexus.

Each goal is stored with its tallies and the number of the last counted event, so that each event counts once;
counting the whole log again gives the same. The reward is granted in the transaction in which the goal is reached,
and only once, because a reached goal can't be set again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.protocol import Goal, PortableItem
from wsap_nexus.agents.chronicle import every
from wsap_nexus.agents.requirements import (
    KINDS,
    Requirement,
    Tally,
    fold,
    measure,
    named_games,
    renamed_tally,
    values_of,
)
from wsap_nexus.store.entities import GoalRecord
from wsap_nexus.store.events.agents import MetaGoalAbandoned, MetaGoalReached, MetaGoalSet
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.repository import NEXUS

MOST_ACTIVE = 10
"""Maximum number of active goals of one agent."""

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Reward:
    """The reward of a goal: a title, listed among the achievements, and optionally an item."""

    title: str
    item: str = ""
    """The name of a portable item that the agent gets; empty for none."""
    category: str = "currency"
    tier: int = 1


@dataclass(frozen=True)
class MetaGoal:
    """A goal across worlds; it is reached when every requirement is met."""

    id: str
    description: str
    requirements: tuple[Requirement, ...]
    reward: Reward | None = None


@dataclass(frozen=True)
class Pursuit:
    """A goal of one agent, with its progress."""

    goal: MetaGoal
    state: str
    """"active", "reached" or "abandoned"."""
    since: int
    """The number of the event after which events count."""
    games: tuple[str, ...]
    """All games when it was set."""
    tallies: tuple[Tally, ...] = field(default=())
    seq: int = 0
    """The number of the last counted event."""

    def measures(self) -> list[tuple[float, float]]:
        """Return (progress, target) of each requirement."""
        pairs = zip(self.goal.requirements, self.tallies, strict=True)
        return [measure(requirement, tally, self.games) for requirement, tally in pairs]

    @property
    def complete(self) -> bool:
        """Whether every requirement is met."""
        return all(have >= need for have, need in self.measures())

    @property
    def progress(self) -> str:
        """The progress: "2/3", or "1/2 (100/100; 0.35/0.8)" with several requirements."""
        parts = [f"{have:.4g}/{need:.10g}" for have, need in self.measures()]
        if len(parts) == 1:
            return parts[0]
        met = sum(1 for have, need in self.measures() if have >= need)
        return f"{met}/{len(parts)} ({'; '.join(parts)})"

    def to_goal(self) -> Goal:
        """Return it as a goal for observations."""
        missing = self.missing()
        hints = (f"still to do in: {', '.join(missing[:10])}",) if missing else ()
        return Goal(self.goal.id, self.goal.description, "meta", self.progress, hints)

    def missing(self) -> list[str]:
        """Return the games in which a requirement that depends on the game is not met yet."""
        found: list[str] = []
        for requirement, tally in zip(self.goal.requirements, self.tallies, strict=True):
            if requirement.type == "reach_skill_level" or (requirement.games == "any" and not requirement.worlds):
                continue
            have, need = measure(requirement, tally, self.games)
            if have < need:
                named = named_games(requirement, self.games)
                values = values_of(requirement, tally)
                found += [g for g in named if values.get(g, 0) < requirement.count and g not in found]
        return found

    def domains(self) -> list[str]:
        """Return the domains whose required level is not reached yet."""
        pairs = zip(self.goal.requirements, self.measures(), strict=True)
        return [r.what for r, (have, need) in pairs if r.type == "reach_skill_level" and have < need]


TEMPLATES: Mapping[str, MetaGoal] = {
    goal.id: goal
    for goal in (
        MetaGoal(
            "endurance",
            "Survive 100 steps in three worlds",
            (Requirement("survive_steps", count=100, worlds=3),),
            Reward("enduring", "Token of endurance", tier=3),
        ),
        MetaGoal(
            "traveller",
            "Visit every world",
            (Requirement("visit_game", games="all"),),
            Reward("well-travelled", "Token of travel", tier=2),
        ),
        MetaGoal(
            "artisan",
            "Reach 80 % in crafting",
            (Requirement("reach_skill_level", "crafting", 0.8),),
            Reward("artisan", "Token of craft", tier=5),
        ),
        MetaGoal(
            "achiever",
            "Earn ten different achievements",
            (Requirement("earn_achievement", count=10),),
            Reward("achiever", "Token of renown", tier=2),
        ),
        MetaGoal(
            "collector",
            "Bring five items out of worlds",
            (Requirement("collect_items", count=5),),
            Reward("collector", "Token of plenty", tier=1),
        ),
    )
}
"""The goals of the nexus; only these have rewards, so that no agent can reward itself."""


def own_goal(
    goal_id: str, description: str, kind: str, *, what: str = "", count: float = 1, games: str = "any", worlds: int = 0
) -> MetaGoal:
    """Return a goal made by an agent or a person; reaching it is logged, but not rewarded.

    Args:
        goal_id: derived from the description if empty.
        description: one sentence.
        kind: the requirement's type; see `Requirement`, also for `what`, `count` and `worlds`.
        games: "any", "all", or games separated by commas.
    """
    named = tuple(name.strip() for name in games.split(",") if name.strip())
    where = games.strip() if games.strip() in ("any", "all") else named
    requirement = Requirement(kind, what, count, where, worlds)
    text = " ".join(description.split())[:200] or f"{kind} {what} {count:g} ({games})"
    plain = goal_id or re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]
    return MetaGoal(plain, text, (requirement,))


# --- goals of agents ------------------------------------------------------------------------------------


def set_goal(tx: Transaction, agent_id: str, goal: MetaGoal, games: Sequence[str]) -> Pursuit:
    """Set a goal for an agent, and return it with its progress.

    Args:
        goal: from `TEMPLATES` or `own_goal`.
        games: all games, which fixes the meaning of "all".

    Raises:
        UsageError: it can't be counted, is already active or reached, or the agent has too many.
    """
    if not _ID.fullmatch(goal.id):
        raise UsageError(f"Invalid name of a meta-goal: {goal.id[:80]!r}; use up to 64 of a-z, 0-9, dash, underscore.")
    for requirement in goal.requirements:
        requirement.check()
        unknown = [] if isinstance(requirement.games, str) else sorted(set(requirement.games) - set(games))
        if unknown:
            raise UsageError(f"There is no world {unknown[0][:60]!r}; there are: {', '.join(games)}.")
        if isinstance(requirement.games, tuple) and requirement.worlds > len(requirement.games):
            raise UsageError("A meta-goal can't require more worlds than it names.")
    held = {pursuit.goal.id: pursuit for pursuit in pursuits(tx, agent_id)}
    before = held.get(goal.id)
    if before is not None and before.state == "reached":
        raise UsageError(f"You have already reached {goal.id!r}; set another goal.")
    if before is not None and before.state == "active":
        raise UsageError(f"You already have the goal {goal.id!r}: {before.progress}.")
    if sum(1 for pursuit in held.values() if pursuit.state == "active") >= MOST_ACTIVE:
        raise UsageError(f"You have {MOST_ACTIVE} meta-goals, which is the limit; abandon one first.")
    since = tx.note(MetaGoalSet(agent_id=agent_id, goal=goal.id, description=goal.description))
    pursuit = Pursuit(goal, "active", since, tuple(games), tuple({} for _ in goal.requirements), 0)
    if not any(r.type == "reach_skill_level" for r in goal.requirements):
        pursuit = replace(pursuit, seq=since)
    tx.put_goal(agent_id, goal.id, state="active", since=since, data=_to_json(pursuit))
    advance(tx, agent_id)
    return next(p for p in pursuits(tx, agent_id) if p.goal.id == goal.id)


def abandon_goal(tx: Transaction, agent_id: str, goal_id: str) -> None:
    """Abandon a goal of an agent; UsageError if it has no such goal."""
    if not tx.change_active_goal(agent_id, goal_id, state="abandoned"):
        own = ", ".join(p.goal.id for p in pursuits(tx, agent_id, "active")) or "none"
        raise UsageError(f"You have no goal {goal_id[:60]!r}; you have: {own}.")
    tx.note(MetaGoalAbandoned(agent_id=agent_id, goal=goal_id))


def pursuits(tx: Transaction, agent_id: str, *states: str) -> list[Pursuit]:
    """Return an agent's goals, ordered by id: all, or those in the given states."""
    return [_pursuit(stored) for stored in tx.goals(agent_id, *states)]


def advance(tx: Transaction, agent_id: str) -> list[MetaGoal]:
    """Count the events since the last call, grant the rewards of reached goals, and return these goals.

    Called at the end of each transaction with events of `KINDS`.
    """
    reached: list[MetaGoal] = []
    for pursuit in pursuits(tx, agent_id, "active"):
        tallies: tuple[Tally, ...] = tuple(json.loads(json.dumps(tally)) for tally in pursuit.tallies)
        last = 0
        for event in every(tx, *KINDS, agent=agent_id, after=pursuit.seq):
            for requirement, tally in zip(pursuit.goal.requirements, tallies, strict=True):
                if event.seq > pursuit.since or requirement.type == "reach_skill_level":
                    fold(requirement, tally, event)
            last = event.seq
        if not last:
            continue
        now = replace(pursuit, tallies=tallies, seq=last)
        state = "reached" if now.complete else "active"
        # Only one transaction changes the state from active to reached, so the reward is granted once.
        changed = tx.change_active_goal(agent_id, pursuit.goal.id, state=state, data=_to_json(now))
        if changed and state == "reached":
            _grant(tx, agent_id, pursuit.goal)
            reached.append(pursuit.goal)
    return reached


def _grant(tx: Transaction, agent_id: str, goal: MetaGoal) -> None:
    reward = goal.reward
    given = {} if reward is None else {"title": reward.title, "item": reward.item}
    tx.note(MetaGoalReached(agent_id=agent_id, goal=goal.id, description=goal.description, reward=given))
    if reward is None:
        return
    tx.add_achievement(agent_id, NEXUS, "", reward.title, 1)
    if reward.item:
        item_id = f"meta-goal:{goal.id}:{agent_id}"
        item = PortableItem(item_id, reward.item, reward.category, reward.tier, {"for": goal.description}, NEXUS)
        tx.mint_item(agent_id, item, game=NEXUS, session="")


def _to_json(pursuit: Pursuit) -> dict[str, Any]:
    goal, reward = pursuit.goal, pursuit.goal.reward
    return {
        "description": goal.description,
        "requirements": [requirement.to_json() for requirement in goal.requirements],
        "reward": None if reward is None else asdict(reward),
        "games": list(pursuit.games),
        "tallies": list(pursuit.tallies),
        "seq": pursuit.seq,
    }


def renamed_goal(data: Mapping[str, Any], now: Callable[[str], str]) -> dict[str, Any]:
    """Return the stored data of a goal with the present names of games, given by `now`; Any: JSON."""

    def named(games: str | list[str]) -> str | list[str]:
        return games if isinstance(games, str) else list(dict.fromkeys(map(now, games)))

    return {
        **data,
        "requirements": [{**one, "games": named(one["games"])} for one in data["requirements"]],
        "games": named(data["games"]),
        "tallies": [
            renamed_tally(one["type"], tally, now)
            for one, tally in zip(data["requirements"], data["tallies"], strict=True)
        ],
    }


def _pursuit(stored: GoalRecord) -> Pursuit:
    data = stored.data
    requirements = tuple(Requirement.from_json(one) for one in data["requirements"])
    reward = Reward(**data["reward"]) if data["reward"] else None
    goal = MetaGoal(stored.id, data["description"], requirements, reward)
    return Pursuit(goal, stored.state, stored.since, tuple(data["games"]), tuple(data["tallies"]), data["seq"])
