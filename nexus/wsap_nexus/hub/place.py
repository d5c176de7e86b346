"""The nexus as a world: what an agent perceives and can do while it is in no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from wsap_core import protocol
from wsap_core.errors import WsapError
from wsap_core.protocol.lines import bullets
from wsap_core.protocol.observation import render_observation
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_core.worlds.legality import check_action, index_actions
from wsap_core.worlds.mailbox import MESSAGE_ACTIONS
from wsap_nexus.agents.messages import StoredMessage
from wsap_nexus.agents.skills import GameEntry, Suggestion
from wsap_nexus.store.entities import AgentIdentity, EntryRequest, SessionRecord

GAME = "nexus"
"""What the nexus is called where a game's name stands."""


@dataclass(frozen=True)
class NexusObservation(protocol.Observation):
    """What an agent in the nexus perceives: itself, the worlds, and where it might go.

    Its meta-goals are the `current_goals`, what happened since it last set out the `recent_events`,
    and what others said to it the `messages`.
    """

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

    def to_text(self) -> str:
        """Return it for a model: the protocol's layout, with the worlds in it."""
        worlds = []
        for entry in self.games:
            where = f", {entry.visits} visits" if entry.visits else ", never visited"
            bodies = f"; your bodies: {', '.join(entry.avatars)}" if entry.avatars else ""
            worlds.append(f"{entry.game} ({entry.status}{where}): {entry.summary}{bodies}")
        suggestions = (f"{s.game} ({s.score:.2f}): {'; '.join(s.reasons)}" for s in self.suggestions)
        sections = [
            ("WORLDS", bullets(worlds)),
            ("SUGGESTIONS", bullets(suggestions)),
            ("SKILLS", ", ".join(f"{k} {v:.2f}" for k, v in sorted(self.skills.items()))),
            ("YOU CARRY", ", ".join(map(single_line, self.carried))),
            ("BEFORE", bullets(self.recent)),
            ("HERE", ", ".join(map(single_line, self.present))),
        ]
        return render_observation(self, extra_sections=sections)


@dataclass(frozen=True)
class NexusState:
    """What the nexus tells an agent of itself and of the worlds."""

    identity: AgentIdentity
    skills: Mapping[str, float] = field(default_factory=dict)
    carried: Sequence[str] = ()
    achievements: Sequence[str] = ()
    games: Sequence[GameEntry] = ()
    suggestions: Sequence[Suggestion] = ()
    sessions: Sequence[SessionRecord] = ()
    """The last ones, newest first."""
    present: Sequence[str] = ()
    goals: Sequence[protocol.Goal] = ()
    news: Sequence[protocol.Event] = ()
    """What happened since it last set out, newest first."""
    letters: Sequence[StoredMessage] = ()
    """What others said to it and it has not read, oldest first."""
    team: str | None = None


class NexusServices(Protocol):
    """What an agent in the nexus can ask for. What it can't have is told by a `WsapError`."""

    def surroundings(self, agent_id: str) -> NexusState:
        """Return what the agent perceives."""
        ...

    def game_details(self, agent_id: str, game: str) -> str:
        """Return what there is to know of a game, for this agent."""
        ...

    def request_enter(self, agent_id: str, game: str, terms: EntryRequest) -> str:
        """Prepare the agent's way into a game, and return what to tell it; TransitError if it can't go there now."""
        ...

    def wait(self, agent_id: str, seconds: float) -> Awaitable[bool]:
        """Wait for some seconds, or until there is news for the agent; return whether there is."""
        ...

    def say(self, agent_id: str, kind: str, text: str, to: str | None) -> str:
        """Send a message, and return what to tell the agent."""
        ...

    def mark_read(self, agent_id: str, ids: Sequence[int]) -> None:
        """Take messages as read."""
        ...

    def set_goal(self, agent_id: str, wanted: Mapping[str, Any]) -> str:
        """Give the agent a meta-goal, and return what to tell it. Any: parameters of the action."""
        ...

    def abandon_goal(self, agent_id: str, goal: str) -> str:
        """Take a meta-goal from the agent, and return what to tell it."""
        ...


_GOAL_TYPES = "survive_steps|visit_game|earn_achievement|reach_skill_level|complete_action|collect_items"

NEXUS_ACTIONS = protocol.ActionSpace(
    (
        protocol.ActionDef("list_games", "See all worlds and how they stand", (), (), "nexus"),
        protocol.ActionDef(
            "game_details", "Read more about one world", (protocol.ParamDef("game", "a world's name"),), (), "nexus"
        ),
        protocol.ActionDef(
            "enter_game",
            "Go into a world; your body there is woken, or a new one is made",
            (
                protocol.ParamDef("game", "a world's name"),
                protocol.ParamDef("spawn", "safe|challenging|random", optional=True),
                protocol.ParamDef("difficulty", "easy|normal|hard|adaptive", optional=True),
                protocol.ParamDef("goals", "what you want to do there", optional=True),
                protocol.ParamDef(
                    "exit_when", "when to come back by itself, such as: health < 10% or step >= 500", optional=True
                ),
                protocol.ParamDef("steps", "1-1000000", optional=True, description="most decisions there"),
                protocol.ParamDef("avatar", "which of your bodies, or: new", optional=True),
                protocol.ParamDef("respawn", "how a dead body lives again, by the world's own words", optional=True),
                protocol.ParamDef("world", "which of the game's worlds that go on by themselves", optional=True),
                protocol.ParamDef("seat", "whom to be there, where you can be somebody", optional=True),
            ),
            ("The world is available",),
            "nexus",
        ),
        protocol.ActionDef(
            "wait_for_game",
            "Wait here until a world opens, somebody speaks to you, or the time is up",
            (protocol.ParamDef("timeout", "1-600", optional=True, description="seconds"),),
            (),
            "nexus",
        ),
        protocol.ActionDef("review_self", "Look at who you are and what you can do", (), (), "nexus"),
        protocol.ActionDef("review_achievements", "Look at what you have achieved", (), (), "nexus"),
        protocol.ActionDef(
            "set_meta_goal",
            "Set yourself a goal that spans worlds: endurance, traveller, artisan, achiever, collector, or your own",
            (
                protocol.ParamDef("goal", "one of these, or a name for your own"),
                protocol.ParamDef("about", _GOAL_TYPES, optional=True),
                protocol.ParamDef("what", "the achievement, action, skill or kind of item", optional=True),
                protocol.ParamDef("count", "1-1000000", optional=True, description="how much; percent of a skill"),
                protocol.ParamDef("games", "any, all, or worlds separated by commas", optional=True),
                protocol.ParamDef("worlds", "1-1000", optional=True, description="in how many different worlds"),
            ),
            (),
            "nexus",
        ),
        protocol.ActionDef(
            "abandon_meta_goal", "Give up a meta-goal", (protocol.ParamDef("goal", "its name"),), (), "nexus"
        ),
        *MESSAGE_ACTIONS.actions,
    )
)

DESCRIPTION = """\
You are in the nexus, the place between the worlds. Here you have no body. You keep who you are,
what you can do, what you carry and what you remember; the bodies that you have in worlds sleep
there until you come back to them. Look at the worlds, choose one, and enter it. Your skills are
worth something there, and what you learn there stays with you."""

_DECLARED = index_actions(NEXUS_ACTIONS)
_MESSAGES = {"say": "broadcast", "tell": "direct", "tell_team": "team"}


class NexusAdapter:
    """The nexus around one agent: a `GameAdapter` with one seat."""

    def __init__(self, desk: NexusServices, agent_id: str) -> None:
        self._desk = desk
        self._agent_id = agent_id
        self._step = 0
        self._leaving = False
        self._seen: NexusObservation | None = None
        self._unread: tuple[int, ...] = ()

    @property
    def game_description(self) -> str:
        """What the nexus is."""
        return DESCRIPTION

    @property
    def action_space(self) -> protocol.ActionSpace:
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

    async def act(self, action: protocol.Action) -> protocol.ActionResult:
        """Carry out an action of the nexus; messages that were shown count as read."""
        if self._leaving:
            return protocol.ActionResult(False, "You are on your way already.", done=True, observation=self.observe())
        action, wrong = check_action(action, _DECLARED)
        if wrong:
            return protocol.ActionResult(False, wrong, observation=self.observe())
        seen = self.observe()
        if self._unread:
            self._desk.mark_read(self._agent_id, self._unread)
        self._step += 1
        try:
            success, message = True, await self._carry_out(action)
        except WsapError as error:
            success, message = False, str(error)
        leaving = success and action.name == "enter_game"  # nobody decides on what is seen then
        self._seen = replace(seen, step=self._step, messages=()) if leaving else None
        return protocol.ActionResult(success, message, done=self._leaving, observation=self.observe())

    async def _carry_out(self, action: protocol.Action) -> str:
        given, own = action.parameters, self._agent_id
        match action.name:
            case "enter_game":
                message = self._desk.request_enter(own, str(given["game"]), _terms(given))
                self._leaving = True
                return message
            case "game_details":
                return self._desk.game_details(own, str(given["game"]))
            case "wait_for_game":
                news = await self._desk.wait(own, float(given.get("timeout") or 10))
                return "Something has happened." if news else "You waited."
            case "set_meta_goal":
                return self._desk.set_goal(own, given)
            case "abandon_meta_goal":
                return self._desk.abandon_goal(own, str(given["goal"]))
            case "say" | "tell" | "tell_team":
                to = str(given["to"]) if action.name == "tell" else None
                return self._desk.say(own, _MESSAGES[action.name], str(given["text"]), to)
        around = self._desk.surroundings(own)
        return _REVIEWS[action.name](around)

    def _perceive(self) -> NexusObservation:
        around = self._desk.surroundings(self._agent_id)
        self._unread = tuple(letter.id for letter in around.letters)
        return NexusObservation(
            step=self._step,
            current_goals=tuple(around.goals),
            recent_events=tuple(around.news),
            messages=tuple(letter.message for letter in around.letters),
            available_actions=_availability(around),
            agent=around.identity.name,
            skills=dict(around.skills),
            carried=tuple(around.carried),
            games=tuple(around.games),
            suggestions=tuple(around.suggestions),
            recent=tuple(_told(session) for session in around.sessions),
            present=tuple(around.present),
        )


def _terms(given: Mapping[str, Any]) -> EntryRequest:
    # Any: parameters that were checked against their declaration.
    goals = str(given.get("goals") or "").strip()
    return EntryRequest(
        goals=(goals,) if goals else (),
        exit_when=str(given.get("exit_when") or ""),
        steps=int(given["steps"]) if given.get("steps") else None,
        spawn=str(given.get("spawn") or "safe"),
        difficulty=str(given.get("difficulty") or "normal"),
        avatar=str(given["avatar"]) if given.get("avatar") else None,
        respawn=str(given["respawn"]) if given.get("respawn") else None,
        world=str(given["world"]) if given.get("world") else None,
        seat=str(given["seat"]) if given.get("seat") else None,
    )


def _availability(around: NexusState) -> tuple[protocol.ActionAvailability, ...]:
    barred = {
        "enter_game": "" if any(g.status == "available" for g in around.games) else "no world is available",
        "abandon_meta_goal": "" if around.goals else "you have no meta-goal",
        "say": "" if around.present else "nobody else is here",
        "tell_team": "" if around.team else "you are in no team",
    }
    return tuple(
        protocol.ActionAvailability(name, not barred.get(name), barred.get(name, "")) for name in NEXUS_ACTIONS.names
    )


def _list_games(around: NexusState) -> str:
    return "; ".join(f"{g.game} is {g.status}" for g in around.games) or "There are no worlds."


def _review_self(around: NexusState) -> str:
    own = around.identity
    skills = ", ".join(f"{k} {v:.2f}" for k, v in sorted(around.skills.items())) or "none yet"
    parts = [f"You are {own.name}.", own.persona, f"You have made {own.lifetime_steps} decisions in worlds."]
    parts += [f"Skills: {skills}.", f"You carry: {', '.join(around.carried) or 'nothing'}."]
    parts += [f"Your team: {around.team}."] if around.team else []
    goals = "; ".join(f"{g.id}: {g.description} ({g.progress})" for g in around.goals)
    parts += [f"Your goals: {goals}."] if goals else []
    parts += [f"You remember: {line}" for line in own.core_memories[:10]]
    parts += [f"You hold to: {line}" for line in own.strategies[:10]]
    return single_line(" ".join(part for part in parts if part))


def _review_achievements(around: NexusState) -> str:
    return f"You have achieved: {', '.join(map(single_line, around.achievements)) or 'nothing yet'}."


_REVIEWS: Mapping[str, Callable[[NexusState], str]] = {
    "list_games": _list_games,
    "review_self": _review_self,
    "review_achievements": _review_achievements,
}


def _told(session: SessionRecord) -> str:
    achieved = session.stats.get("achievements") or []
    deeds = f", achieved {', '.join(achieved)}" if achieved else ""
    return f"{session.game}: {session.steps} decisions{deeds}, ended by {session.reason or 'nothing yet'}"


NEXUS_SPEC = AdapterSpec(
    GAME,
    "The place between the worlds.",
    NexusAdapter,
    title="the nexus",
    default_agent="wanderer",
    wire_types=(NexusObservation,),
    genre="hub",
    dimensions="text",
    persistent=True,
)
