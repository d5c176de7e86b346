"""The nexus as a world: what an agent perceives and can do while it is in no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from wsap_core.models import (
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    Goal,
    Observation,
    ParamDef,
)
from wsap_core.models.base import Part, freeze_sequences
from wsap_core.specs import AdapterSpec, GameInfo
from wsap_nexus.hub.records import AgentIdentity, SessionRecord, Terms

GAME = "nexus"
"""What the nexus is called where a game's name stands."""


@dataclass(frozen=True)
class Suggestion(Part):
    """A world that would be good to go to now."""

    game: str
    score: float
    """From 0 to 1."""
    reasons: Sequence[str] = ()

    def __post_init__(self) -> None:
        freeze_sequences(self, "reasons")


@dataclass(frozen=True)
class GameEntry(Part):
    """A world, as it is listed in the nexus."""

    game: str
    name: str
    summary: str
    status: str
    active_agents: int = 0
    capacity: int = 1
    visits: int = 0
    """How often this agent has been there."""
    avatars: Sequence[str] = ()
    """This agent's bodies there: "avatar-1 (dormant)"."""

    def __post_init__(self) -> None:
        freeze_sequences(self, "avatars")


@dataclass(frozen=True)
class NexusObservation(Observation):
    """What an agent in the nexus perceives: itself, the worlds, and where it might go."""

    agent: str = field(default="", kw_only=True)
    skills: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    """Domain -> level from 0 to 1."""
    carried: Sequence[str] = field(default=(), kw_only=True)
    """The items in its keeping."""
    games: Sequence[GameEntry] = field(default=(), kw_only=True)
    suggestions: Sequence[Suggestion] = field(default=(), kw_only=True)
    """Best first."""
    recent: Sequence[str] = field(default=(), kw_only=True)
    """Its last sessions, newest first."""
    present: Sequence[str] = field(default=(), kw_only=True)
    """Other agents in the nexus."""

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze_sequences(self, "carried", "games", "suggestions", "recent", "present")

    def to_text(self) -> str:
        """Return it for a model: the protocol's layout, then the worlds."""
        lines = [super().to_text(), "", "=== WORLDS ==="]
        for entry in self.games:
            where = f", {entry.visits} visits" if entry.visits else ", never visited"
            bodies = f"; your bodies: {', '.join(entry.avatars)}" if entry.avatars else ""
            lines.append(f"- {entry.game} ({entry.status}{where}): {entry.summary}{bodies}")
        if self.suggestions:
            lines += ["", "=== SUGGESTIONS ==="]
            lines += [f"- {s.game} ({s.score:.2f}): {'; '.join(s.reasons)}" for s in self.suggestions]
        if self.skills:
            lines += ["", "=== SKILLS ===", ", ".join(f"{k} {v:.2f}" for k, v in sorted(self.skills.items()))]
        if self.carried:
            lines += ["", "=== YOU CARRY ===", ", ".join(self.carried)]
        if self.recent:
            lines += ["", "=== BEFORE ===", *(f"- {line}" for line in self.recent)]
        if self.present:
            lines += ["", "=== HERE ===", ", ".join(self.present)]
        return "\n".join(lines)


@dataclass(frozen=True)
class Surroundings:
    """What the nexus tells an agent of itself and of the worlds."""

    identity: AgentIdentity
    skills: Mapping[str, float]
    carried: Sequence[str]
    achievements: Sequence[str]
    games: Sequence[GameEntry]
    suggestions: Sequence[Suggestion]
    sessions: Sequence[SessionRecord]
    present: Sequence[str]
    goals: Sequence[Goal]
    news: Sequence[str] = ()
    """What happened since it was last told."""


class Desk(Protocol):
    """What an agent in the nexus can ask for."""

    def surroundings(self, agent_id: str) -> Surroundings:
        """Return what the agent perceives."""
        ...

    def game_info(self, game: str) -> GameInfo:
        """Return what is known of a game."""
        ...

    def request_enter(self, agent_id: str, game: str, terms: Terms) -> str:
        """Prepare the agent's way into a game, and return what to tell it.

        Raises:
            TransitError: it can't go there now.
        """
        ...


NEXUS_ACTIONS = ActionSpace(
    (
        ActionDef("list_games", "See all worlds and how they stand", (), (), "nexus"),
        ActionDef("game_details", "Read more about one world", (ParamDef("game", "a world's name"),), (), "nexus"),
        ActionDef(
            "enter_game",
            "Go into a world; your body there is woken, or a new one is made",
            (
                ParamDef("game", "a world's name"),
                ParamDef("spawn", "safe|challenging|random", optional=True),
                ParamDef("difficulty", "easy|normal|hard|adaptive", optional=True),
                ParamDef("goals", "what you want to do there", optional=True),
                ParamDef(
                    "exit_when", "when to come back by itself, such as: health < 10% or step >= 500", optional=True
                ),
                ParamDef("avatar", "which of your bodies", optional=True),
            ),
            ("The world is available",),
            "nexus",
        ),
        ActionDef(
            "wait_for_game", "Wait here for a while", (ParamDef("seconds", "1-600", optional=True),), (), "nexus"
        ),
        ActionDef("review_self", "Look at who you are and what you can do", (), (), "nexus"),
        ActionDef("review_achievements", "Look at what you have achieved", (), (), "nexus"),
    )
)

DESCRIPTION = """\
You are in the nexus, the place between the worlds. Here you have no body. You keep who you are,
what you can do, what you carry and what you remember; the bodies that you have in worlds sleep
there until you come back to them. Look at the worlds, choose one, and enter it. Your skills are
worth something there, and what you learn there stays with you."""


class NexusPlace:
    """The nexus around one agent: a `GameAdapter` with one seat.

    Args:
        desk: what answers.
        agent_id: who is here.
        wait: waits for some seconds, or until something happens.
    """

    def __init__(self, desk: Desk, agent_id: str, wait: Callable[[float], Any]) -> None:
        # Any: what waiting gives is of no interest.
        self._desk = desk
        self._agent_id = agent_id
        self._wait = wait
        self._step = 0
        self._leaving = False
        self._seen: NexusObservation | None = None

    @property
    def game_description(self) -> str:
        """What the nexus is."""
        return DESCRIPTION

    @property
    def action_space(self) -> ActionSpace:
        """What can be done here."""
        return NEXUS_ACTIONS

    def observe(self) -> NexusObservation:
        """Return what the agent perceives; the same until it acts."""
        if self._seen is None:
            self._seen = self._perceive()
        return self._seen

    def reset(self) -> NexusObservation:
        """Arrive."""
        self._step, self._leaving, self._seen = 0, False, None
        return self.observe()

    async def act(self, action: Action) -> ActionResult:
        """Carry out an action of the nexus."""
        self._step += 1
        self._seen = None
        success, message = await self._carry_out(action)
        return ActionResult(success, message, done=self._leaving, observation=self.observe())

    async def _carry_out(self, action: Action) -> tuple[bool, str]:
        from wsap_core.errors import WsapError

        given = action.parameters
        try:
            if action.name == "enter_game":
                goals = str(given.get("goals", "")).strip()
                terms = Terms(
                    goals=(goals,) if goals else (),
                    exit_when=str(given.get("exit_when", "")),
                    spawn=str(given.get("spawn", "safe")),
                    difficulty=str(given.get("difficulty", "normal")),
                    avatar=str(given["avatar"]) if given.get("avatar") else None,
                )
                message = self._desk.request_enter(self._agent_id, str(given["game"]), terms)
                self._leaving = True
                return True, message
            if action.name == "game_details":
                info = self._desk.game_info(str(given["game"]))
                return True, (
                    f"{info.name}: {info.description} Genre: {info.genre or 'unknown'}. Seats: {info.capacity}. "
                    f"Skills used there: {', '.join(info.skill_domains) or 'none declared'}. It is {info.status}."
                )
            if action.name == "wait_for_game":
                await self._wait(float(given.get("seconds", 10)))
                return True, "You waited."
        except WsapError as error:
            return False, str(error)
        around = self._desk.surroundings(self._agent_id)
        if action.name == "list_games":
            return True, "; ".join(f"{g.game} is {g.status}" for g in around.games) or "There are no worlds."
        if action.name == "review_self":
            own = around.identity
            skills = ", ".join(f"{k} {v:.2f}" for k, v in sorted(around.skills.items())) or "none yet"
            return True, (
                f"You are {own.name}. {own.persona} You have made {own.lifetime_steps} decisions in worlds. "
                f"Skills: {skills}. You carry: {', '.join(around.carried) or 'nothing'}."
            )
        return True, "You have achieved: " + (", ".join(around.achievements) or "nothing yet") + "."

    def _perceive(self) -> NexusObservation:
        around = self._desk.surroundings(self._agent_id)
        open_games = [g for g in around.games if g.status == "available"]
        closed = ActionAvailability("enter_game", bool(open_games), "" if open_games else "no world is available")
        return NexusObservation(
            step=self._step,
            current_goals=tuple(around.goals),
            available_actions=tuple(
                replace(closed, name=name) if name == "enter_game" else ActionAvailability(name)
                for name in NEXUS_ACTIONS.names
            ),
            agent=around.identity.name,
            skills=dict(around.skills),
            carried=tuple(around.carried),
            games=tuple(around.games),
            suggestions=tuple(around.suggestions),
            recent=tuple(_told(s) for s in around.sessions) + tuple(around.news),
            present=tuple(around.present),
        )


def _told(session: SessionRecord) -> str:
    achieved = session.stats.get("achievements") or []
    deeds = f", achieved {', '.join(achieved)}" if achieved else ""
    return f"{session.game}: {session.steps} decisions{deeds}, ended by {session.reason or 'nothing yet'}"


NEXUS_SPEC = AdapterSpec(
    GAME,
    "The place between the worlds.",
    NexusPlace,
    title="the nexus",
    default_agent="wanderer",
    wire_types=(NexusObservation,),
    genre="hub",
    dimensions="text",
    persistent=True,
)
"""The nexus, described like any game."""
