"""Events about agents: identities, messages, skills and goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import JsonValue
from typing_extensions import override

from wsap_nexus.store.events.base import (
    BY_ID,
    AgentEvent,
    Gain,
    GainEvent,
    Names,
    NexusEvent,
    because,
    count,
    place,
    plain,
    short,
)


class AgentRegistered(AgentEvent):
    """An agent joined the nexus."""

    PUBLIC = frozenset({"name"})
    TOLD = "{who} joined the nexus"
    kind: Literal["agent_registered"] = "agent_registered"
    name: str = ""


class AgentRenamed(AgentEvent):
    """An agent was renamed."""

    PUBLIC = frozenset({"name", "before"})
    kind: Literal["agent_renamed"] = "agent_renamed"
    name: str
    before: str = ""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        return f"{short(self.before or self.agent_id, 80)} was renamed to {short(self.name, 80)}"


class AgentRemoved(AgentEvent):
    """An agent was removed permanently."""

    PUBLIC = frozenset()
    TOLD = "{was} removed"
    kind: Literal["agent_removed"] = "agent_removed"


class AgentImported(AgentEvent):
    """An agent was imported from a file."""

    PUBLIC = frozenset()
    TOLD = "{was} imported from a file"
    kind: Literal["agent_imported"] = "agent_imported"
    was: str = ""
    """Its id in the file."""
    items: int = 0


class AgentPaused(AgentEvent):
    """A person paused an agent."""

    PUBLIC = frozenset()
    TOLD = "{was} paused"
    kind: Literal["agent_paused"] = "agent_paused"


class AgentResumed(AgentEvent):
    """A person resumed a paused agent."""

    PUBLIC = frozenset()
    TOLD = "{was} resumed"
    kind: Literal["agent_resumed"] = "agent_resumed"


class AgentFailed(AgentEvent):
    """An agent or its model failed; the agent is paused until a person resumes it."""

    PUBLIC = frozenset({"code"})
    TOLD = "{who} failed and is paused{because}"
    kind: Literal["agent_failed"] = "agent_failed"
    error: str = ""
    code: str = ""
    """The error's stable code."""


class PersonaChanged(AgentEvent):
    """A person changed an agent's persona."""

    TOLD = "{whose} persona was changed"
    kind: Literal["persona_changed"] = "persona_changed"
    persona: str = ""
    before: str = ""


class KeptInMind(AgentEvent):
    """What an agent keeps in mind in every world changed: by a look back at a session, by itself, or by a person."""

    TOLD = "{who} keeps other things in mind now"
    kind: Literal["kept_in_mind"] = "kept_in_mind"
    core_memories: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()


class PolicyChanged(AgentEvent):
    """A person changed an agent's policy for a game, the nexus, or everything else ("*")."""

    kind: Literal["policy_changed"] = "policy_changed"
    policy: Mapping[str, JsonValue] | None = None
    """The agent that decides and its options; None if the policy was removed."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        where = "" if self.game in (None, "*") else f" for {place(self.game)}"
        what = "removed" if self.policy is None else f"changed to {plain(self.policy.get('agent', 'another'))}"
        return f"{names.whose(self.agent_id)} policy{where} was {what}"


class TeamChanged(AgentEvent):
    """An agent joined or left a team."""

    kind: Literal["team_changed"] = "team_changed"
    team: str | None = None

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        how = f"joined the team {short(self.team, 80)}" if self.team else f"left {names.its(self.agent_id)} team"
        return f"{names.who(self.agent_id)} {how}"


class SkillGained(GainEvent):
    """A skill of an agent increased."""

    kind: Literal["skill_gained"] = "skill_gained"
    domain: str
    source: str = ""
    """`achievement:NAME`, `action:NAME`, or `import`."""
    times: int = 1
    """Its count in the session."""
    gain: float = 0.0
    level: float
    """The new level, from 0 to 1."""

    @property
    @override
    def minor(self) -> bool:
        return abs(self.gain) < 0.005

    @override
    def gained(self, names: Names) -> Gain:
        return Gain(f"{names.who(self.agent_id)} improved at", self.domain, f"{plain(self.domain)} ({self.level:.2f})")


class AchievementEarned(GainEvent):
    """An agent earned an achievement for the first time."""

    kind: Literal["achievement"] = "achievement"
    name: str

    @override
    def gained(self, names: Names) -> Gain:
        return Gain(f"{names.who(self.agent_id)} achieved in {place(self.game)}:", self.name, plain(self.name))


class MetaGoalSet(AgentEvent):
    """An agent adopted a meta-goal."""

    kind: Literal["meta_goal_set"] = "meta_goal_set"
    goal: str
    description: str = ""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        return f"{names.who(self.agent_id)} took on the goal: {short(self.description) or plain(self.goal)}"


class MetaGoalReached(AgentEvent):
    """An agent reached a meta-goal."""

    kind: Literal["meta_goal_reached"] = "meta_goal_reached"
    goal: str
    description: str = ""
    reward: Mapping[str, str | None] = {}
    """`title` and `item`, if there is a reward."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        worth = ", ".join(short(self.reward[part], 80) for part in ("title", "item") if self.reward.get(part))
        what = short(self.description) or plain(self.goal)
        who = names.who(self.agent_id)
        return f"{who} reached {names.its(self.agent_id)} goal: {what}{f' ({worth})' if worth else ''}"


class MetaGoalAbandoned(AgentEvent):
    """An agent abandoned a meta-goal."""

    TOLD = "{who} gave up {its} goal {goal}"
    kind: Literal["meta_goal_abandoned"] = "meta_goal_abandoned"
    goal: str


class MessageSent(NexusEvent):
    """A message was sent in the nexus, by an agent or, if `agent_id` is None, by a person."""

    PUBLIC = frozenset({"form", "recipients"})
    kind: Literal["message_sent"] = "message_sent"
    to: str | None = None
    """The recipient or team; None for a broadcast."""
    form: str = "direct"
    """"broadcast", "direct" or "team"."""
    recipients: int = 1

    @property
    @override
    def readers(self) -> frozenset[str]:
        return frozenset(filter(None, (self.agent_id, self.to if self.form == "direct" else None)))

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        who = names.who(self.agent_id) if self.agent_id else "A person"
        if self.form == "direct" and self.to:
            whom = names.them(self.to)
        elif self.form == "direct":
            whom = "another agent"
        elif self.form == "team":
            whom = f"the team {short(self.to, 80)}" if self.to else "a team"
        else:
            whom = count(self.recipients, "other")
        return f"{who} sent a message to {whom}"


class DiaryWritten(AgentEvent):
    """An entry was added to an agent's diary."""

    TOLD = "{who} wrote in {its} diary: {text:120}"
    kind: Literal["diary"] = "diary"
    text: str
    own_words: bool = False
    """Whether the agent wrote it; false if it was composed from the log."""
    error: str | None = None
    """Why the agent could not write it."""
    written: str | None = None
    """The original time of an imported entry, ISO 8601."""


class Spoken(AgentEvent):
    """A person sent a message to an agent."""

    by: str = ""
    text: str
    reply: str = ""
    how: Literal["words", "facts", "whisper", "letter"] = "words"
    """As in `wsap_nexus.store.entities.Answered`."""


class Talked(Spoken):
    """A person talked to an agent in the nexus, and it replied."""

    kind: Literal["talked"] = "talked"

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        said, who = f"A person said to {names.them(self.agent_id)}: {short(self.text)}", names.who(self.agent_id)
        return f"{said} - {who} answered{because(self.reply)}"


class Whispered(Spoken):
    """A person left a whisper or message for an agent."""

    TOLD = "A person whispered to {them}: {text:300}"
    kind: Literal["whispered"] = "whispered"
