"""Meta-goals: what an agent wants to reach across worlds, counted from the nexus' own log.

Nobody reports progress: it is folded from the events `entered`, `left`, `skill_gained` and
`item_found`, which are written in the very transactions that they tell of. Beside each goal stands
what was counted and up to which event, so that each event is counted once; folding everything
anew from the log gives the same (`recounted`). What a goal is worth is granted in the transaction
in which it is reached, and a goal that was reached is never set again, so it is granted once.

What counts, by the type of a requirement:

    survive_steps        decisions of one stay (the longest in each game)
    visit_game           stays that began
    earn_achievement     times of one achievement, or different achievements where none is named
    reach_skill_level    the level of one domain, from 0 to 1; levels had before count, too
    complete_action      times of one action, done with success
    collect_items        portable items brought out of worlds, of one category or name, or any

Where: in `any` games, taken together (a stay is never taken together with another); in `all` games
that there were when the goal was set; or in each of a list. With `worlds`, in so many different
ones of these, in each of them the whole count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, insert, select, update

from wsap_core.errors import UsageError
from wsap_core.protocol import SKILL_DOMAINS, Goal, PortableItem
from wsap_nexus.store.events import (
    Entered,
    ItemFound,
    Left,
    MetaGoalAbandoned,
    MetaGoalReached,
    MetaGoalSet,
    NexusEvent,
    SkillGained,
)
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.tables import METADATA

TYPES = (
    "survive_steps",
    "visit_game",
    "earn_achievement",
    "reach_skill_level",
    "complete_action",
    "collect_items",
)
"""What a requirement can be about."""
KINDS = (Entered, Left, SkillGained, ItemFound)
"""The events that are counted."""
MOST_ACTIVE = 10
"""Goals that an agent can have at a time."""
LARGEST = 1_000_000_000
"""The largest count."""
NEXUS = "nexus"
"""Where rewards come from; they count for no goal."""

_GOAL = METADATA.tables["metagoal"]
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

Tally = dict[str, dict[str, float]]
"""Game -> what -> how much."""


@dataclass(frozen=True)
class Requirement:
    """Something that has to be done, and where."""

    type: str
    """One of `TYPES`."""
    what: str = ""
    """The achievement, action or domain; an item's category or name; empty for any."""
    count: float = 1
    """How much of it; a level from 0 to 1 for `reach_skill_level`."""
    games: str | tuple[str, ...] = "any"
    """"any", "all", or the games."""
    worlds: int = 0
    """In how many different games; 0 for all that `games` names, and for any together."""

    def check(self) -> None:
        """Make sure that it can be counted.

        Raises:
            UsageError: it can't; the message says why.
        """
        if self.type not in TYPES:
            raise UsageError(f"A meta-goal can't be about {self.type[:60]!r}; it can be about: {', '.join(TYPES)}.")
        if not 0 < self.count <= LARGEST or not 0 <= self.worlds <= 1000:
            raise UsageError("A meta-goal's count must be above 0, and at most a billion; its worlds from 0 to 1000.")
        if self.type == "reach_skill_level" and (self.what not in SKILL_DOMAINS or self.count > 1):
            raise UsageError(
                f"reach_skill_level needs one of {', '.join(SKILL_DOMAINS)}, and a level above 0 and at most 1."
            )
        if self.type == "complete_action" and not self.what:
            raise UsageError("complete_action needs the name of an action.")
        if isinstance(self.games, str) and self.games not in ("any", "all"):
            raise UsageError('A meta-goal\'s games are "any", "all" or a list.')
        if isinstance(self.games, tuple) and (not self.games or len(set(self.games)) != len(self.games)):
            raise UsageError("A meta-goal's list of games must name each game once, and at least one.")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        games = self.games if isinstance(self.games, str) else list(self.games)
        return {"type": self.type, "what": self.what, "count": self.count, "games": games, "worlds": self.worlds}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Requirement:
        """Return the requirement of `to_json`."""
        games = data["games"]
        return cls(**{**data, "games": games if isinstance(games, str) else tuple(games)})


@dataclass(frozen=True)
class Reward:
    """What reaching a goal is worth: a title, which stands among the achievements, and maybe an item."""

    title: str
    item: str = ""
    """The name of a portable item that comes into the agent's keeping; none when empty."""
    category: str = "currency"
    tier: int = 1


@dataclass(frozen=True)
class MetaGoal:
    """A goal that spans worlds; it is reached when every requirement is met."""

    id: str
    description: str
    requirements: tuple[Requirement, ...]
    reward: Reward | None = None


@dataclass(frozen=True)
class Pursuit:
    """A goal as one agent has it."""

    goal: MetaGoal
    state: str
    """"active", "reached" or "abandoned"."""
    since: int
    """The number of the event after which things count."""
    games: tuple[str, ...]
    """The games that there were when it was set."""
    tallies: tuple[Tally, ...] = field(default=())
    """What was counted, for each requirement."""
    seq: int = 0
    """The last event that was counted."""

    def measures(self) -> list[tuple[float, float]]:
        """Return (how much there is, how much it takes) for each requirement."""
        pairs = zip(self.goal.requirements, self.tallies, strict=True)
        return [measure(requirement, tally, self.games) for requirement, tally in pairs]

    @property
    def complete(self) -> bool:
        """Whether every requirement is met."""
        return all(have >= need for have, need in self.measures())

    @property
    def progress(self) -> str:
        """How far it is: "2/3", or "1/2 (100/100; 0.35/0.8)" with several requirements."""
        parts = [f"{have:.4g}/{need:.10g}" for have, need in self.measures()]
        if len(parts) == 1:
            return parts[0]
        met = sum(1 for have, need in self.measures() if have >= need)
        return f"{met}/{len(parts)} ({'; '.join(parts)})"

    def to_goal(self) -> Goal:
        """Return it as an observation shows it."""
        missing = self.missing()
        hints = (f"still to do in: {', '.join(missing[:10])}",) if missing else ()
        return Goal(self.goal.id, self.goal.description, "meta", self.progress, hints)

    def missing(self) -> list[str]:
        """Return the games that a requirement still waits for, where it says which."""
        found: list[str] = []
        for requirement, tally in zip(self.goal.requirements, self.tallies, strict=True):
            if requirement.type == "reach_skill_level" or (requirement.games == "any" and not requirement.worlds):
                continue
            have, need = measure(requirement, tally, self.games)
            if have < need:
                named = _named(requirement, self.games)
                values = _values(requirement, tally)
                found += [g for g in named if values.get(g, 0) < requirement.count and g not in found]
        return found

    def domains(self) -> list[str]:
        """Return the domains that a requirement still waits for."""
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
            "Bring five things out of worlds",
            (Requirement("collect_items", count=5),),
            Reward("collector", "Token of plenty", tier=1),
        ),
    )
}
"""Goals that come with the nexus; they alone are worth something, so that nobody pays itself."""


def own_goal(
    goal_id: str,
    description: str,
    kind: str,
    *,
    what: str = "",
    count: float = 1,
    games: str = "any",
    worlds: int = 0,
) -> MetaGoal:
    """Return a goal in an agent's or a person's own terms; reaching it gives a place in the log, and no reward.

    Args:
        goal_id: how it is called; made from the description if empty.
        description: for a reader.
        kind: the requirement's type.
        what: see `Requirement`.
        count: see `Requirement`.
        games: "any", "all", or games separated by commas.
        worlds: see `Requirement`.
    """
    named = tuple(name.strip() for name in games.split(",") if name.strip())
    where = games.strip() if games.strip() in ("any", "all") else named
    requirement = Requirement(kind, what, count, where, worlds)
    text = " ".join(description.split())[:200] or f"{kind} {what} {count:g} ({games})"
    plain = goal_id or re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]
    return MetaGoal(plain, text, (requirement,))


# --- counting -------------------------------------------------------------------------------------


def fold(requirement: Requirement, tally: Tally, event: NexusEvent) -> None:
    """Count an event for a requirement, if it is one that counts."""
    game = event.game or ""
    if game == NEXUS:
        return
    match requirement.type, event:
        case "survive_steps", Left():
            held = tally.setdefault(game, {})
            held["longest"] = max(held.get("longest", 0), event.steps)
        case "visit_game", Entered():
            _add(tally, game, "visits", 1)
        case "earn_achievement", Left():
            _add_done(tally, game, event, "achievement:", requirement.what)
        case "complete_action", Left():
            _add_done(tally, game, event, "action:", requirement.what)
        case "reach_skill_level", SkillGained():
            if event.domain == requirement.what:
                tally["*"] = {"level": event.level}
        case "collect_items", ItemFound():
            if requirement.what in ("", event.item.get("category"), event.item.get("name")):
                _add(tally, game, "found", 1)


def measure(requirement: Requirement, tally: Tally, games: Sequence[str]) -> tuple[float, float]:
    """Return how much of a requirement there is, at most what it takes, and how much it takes.

    Args:
        requirement: what is asked for.
        tally: what was counted.
        games: those that "all" stands for.
    """
    values = _values(requirement, tally)
    if requirement.type == "reach_skill_level":
        return min(values.get("*", 0.0), requirement.count), requirement.count
    named = _named(requirement, games)
    if requirement.games == "any" and not requirement.worlds:
        together = max(values.values(), default=0.0) if requirement.type == "survive_steps" else sum(values.values())
        return min(together, requirement.count), requirement.count
    there = values if requirement.games == "any" else {game: values.get(game, 0.0) for game in named}
    need = requirement.worlds or max(1, len(named))
    return min(sum(1 for value in there.values() if value >= requirement.count), need), need


def _values(requirement: Requirement, tally: Tally) -> dict[str, float]:
    if requirement.type == "earn_achievement" and not requirement.what:
        return {game: float(len(held)) for game, held in tally.items()}
    return {game: float(sum(held.values())) for game, held in tally.items()}


def _named(requirement: Requirement, games: Sequence[str]) -> Sequence[str]:
    return games if isinstance(requirement.games, str) else requirement.games


def _add(tally: Tally, game: str, what: str, times: float) -> None:
    held = tally.setdefault(game, {})
    held[what] = held.get(what, 0) + times


def _add_done(tally: Tally, game: str, event: Left, prefix: str, what: str) -> None:
    for source in sorted(event.done):
        name = source.removeprefix(prefix)
        if source.startswith(prefix) and what in ("", name):
            _add(tally, game, name, event.done[source])


def _counted(goal: MetaGoal, since: int, tallies: Sequence[Tally], events: Iterable[NexusEvent]) -> int:
    """Count events for every requirement, in place, and return the number of the last one; 0 if there was none."""
    last = 0
    for event in events:
        for requirement, tally in zip(goal.requirements, tallies, strict=True):
            if event.seq > since or requirement.type == "reach_skill_level":
                fold(requirement, tally, event)
        last = event.seq
    return last


def recounted(book: Transaction, agent_id: str, pursuit: Pursuit) -> tuple[Tally, ...]:
    """Return what the whole log gives for a goal, up to the last event that was counted for it."""
    tallies: tuple[Tally, ...] = tuple({} for _ in pursuit.goal.requirements)
    events = (event for event in _events(book, agent_id, 0) if event.seq <= pursuit.seq)
    _counted(pursuit.goal, pursuit.since, tallies, events)
    return tallies


def _events(book: Transaction, agent_id: str, after: int) -> Iterable[NexusEvent]:
    while batch := book.events(after=after, agent=agent_id, kinds=KINDS, limit=500):
        yield from batch
        after = batch[-1].seq


# --- the books ------------------------------------------------------------------------------------


def set_goal(book: Transaction, agent_id: str, goal: MetaGoal, games: Sequence[str]) -> Pursuit:
    """Give an agent a goal, and return it with what counts for it already.

    Args:
        book: where.
        agent_id: whose.
        goal: a template, or one's own.
        games: those that there are now; "all" means these from now on.

    Raises:
        UsageError: it can't be counted, or the agent has it, has reached it, or has too many.
    """
    if not _ID.fullmatch(goal.id):
        raise UsageError(f"{goal.id[:80]!r} is no name for a meta-goal: use up to 64 of a-z, 0-9, dash and underscore.")
    for requirement in goal.requirements:
        requirement.check()
        unknown = [] if isinstance(requirement.games, str) else sorted(set(requirement.games) - set(games))
        if unknown:
            raise UsageError(f"There is no world {unknown[0][:60]!r}; there are: {', '.join(games)}.")
        if isinstance(requirement.games, tuple) and requirement.worlds > len(requirement.games):
            raise UsageError("A meta-goal can't ask for more worlds than it names.")
    held = {pursuit.goal.id: pursuit for pursuit in pursuits(book, agent_id)}
    before = held.get(goal.id)
    if before is not None and before.state == "reached":
        raise UsageError(f"You have reached {goal.id!r} already; set another goal.")
    if before is not None and before.state == "active":
        raise UsageError(f"You have the goal {goal.id!r} already: {before.progress}.")
    if sum(1 for pursuit in held.values() if pursuit.state == "active") >= MOST_ACTIVE:
        raise UsageError(f"You have {MOST_ACTIVE} meta-goals, as many as you can; abandon one first.")
    since = book.note(MetaGoalSet(agent_id=agent_id, goal=goal.id, description=goal.description))
    pursuit = Pursuit(goal, "active", since, tuple(games), tuple({} for _ in goal.requirements), 0)
    if not any(r.type == "reach_skill_level" for r in goal.requirements):
        pursuit = _replaced(pursuit, pursuit.tallies, since)
    values = {"state": "active", "since": since, "data": _to_json(pursuit)}
    where = (_GOAL.c.agent_id == agent_id) & (_GOAL.c.id == goal.id)
    if not book.connection.execute(update(_GOAL).where(where).values(**values)).rowcount:
        book.connection.execute(insert(_GOAL).values(agent_id=agent_id, id=goal.id, **values))
    advance(book, agent_id)
    return next(p for p in pursuits(book, agent_id) if p.goal.id == goal.id)


def abandon_goal(book: Transaction, agent_id: str, goal_id: str) -> None:
    """Take a goal from an agent.

    Raises:
        UsageError: it has no such goal.
    """
    where = (_GOAL.c.agent_id == agent_id) & (_GOAL.c.id == goal_id) & (_GOAL.c.state == "active")
    if not book.connection.execute(update(_GOAL).where(where).values(state="abandoned")).rowcount:
        own = ", ".join(p.goal.id for p in pursuits(book, agent_id, "active")) or "none"
        raise UsageError(f"You have no goal {goal_id[:60]!r}; you have: {own}.")
    book.note(MetaGoalAbandoned(agent_id=agent_id, goal=goal_id))


def pursuits(book: Transaction, agent_id: str, *states: str) -> list[Pursuit]:
    """Return an agent's goals by id: all, or those in these states."""
    query = select(_GOAL).where(_GOAL.c.agent_id == agent_id).order_by(_GOAL.c.id)
    if states:
        query = query.where(_GOAL.c.state.in_(states))
    return [_pursuit(row) for row in book.connection.execute(query)]


def advance(book: Transaction, agent_id: str) -> list[MetaGoal]:
    """Count what has happened since the last time, grant what was reached, and return it.

    Called at the end of the transactions in which something happens that counts.
    """
    reached: list[MetaGoal] = []
    for pursuit in pursuits(book, agent_id, "active"):
        tallies: tuple[Tally, ...] = tuple(json.loads(json.dumps(tally)) for tally in pursuit.tallies)
        last = _counted(pursuit.goal, pursuit.since, tallies, _events(book, agent_id, pursuit.seq))
        if not last:
            continue
        now = _replaced(pursuit, tallies, last)
        state = "reached" if now.complete else "active"
        # Only one transaction turns an active goal into a reached one: its reward is granted there.
        where = (_GOAL.c.agent_id == agent_id) & (_GOAL.c.id == pursuit.goal.id) & (_GOAL.c.state == "active")
        changed = book.connection.execute(update(_GOAL).where(where).values(state=state, data=_to_json(now))).rowcount
        if changed == 1 and state == "reached":
            _grant(book, agent_id, pursuit.goal)
            reached.append(pursuit.goal)
    return reached


def _grant(book: Transaction, agent_id: str, goal: MetaGoal) -> None:
    reward = goal.reward
    given = {} if reward is None else {"title": reward.title, "item": reward.item}
    book.note(MetaGoalReached(agent_id=agent_id, goal=goal.id, description=goal.description, reward=given))
    if reward is None:
        return
    book.add_achievement(agent_id, NEXUS, "", reward.title, 1)
    if reward.item:
        item_id = f"meta-goal:{goal.id}:{agent_id}"
        item = PortableItem(item_id, reward.item, reward.category, reward.tier, {"for": goal.description}, NEXUS)
        book.mint_item(agent_id, item, game=NEXUS, session="")


def _replaced(pursuit: Pursuit, tallies: tuple[Tally, ...], seq: int) -> Pursuit:
    return Pursuit(pursuit.goal, pursuit.state, pursuit.since, pursuit.games, tallies, seq)


def _to_json(pursuit: Pursuit) -> dict[str, Any]:
    goal, reward = pursuit.goal, pursuit.goal.reward
    return {
        "description": goal.description,
        "requirements": [requirement.to_json() for requirement in goal.requirements],
        "reward": None if reward is None else vars(reward),
        "games": list(pursuit.games),
        "tallies": list(pursuit.tallies),
        "seq": pursuit.seq,
    }


def _pursuit(row: Row[Any]) -> Pursuit:
    data = row.data
    requirements = tuple(Requirement.from_json(one) for one in data["requirements"])
    reward = Reward(**data["reward"]) if data["reward"] else None
    goal = MetaGoal(row.id, data["description"], requirements, reward)
    return Pursuit(goal, row.state, row.since, tuple(data["games"]), tuple(data["tallies"]), data["seq"])
