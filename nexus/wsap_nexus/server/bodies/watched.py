"""Bodies of responses for those who watch: the log, the overview, worlds, runs, decisions and minds.

`wsap_nexus.server.serializers` writes them, of bounded size; these classes only document them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from wsap_core.seams.agent import Usage
from wsap_nexus.hub.transit.reconciliation import UnresolvedTransfer
from wsap_nexus.server.bodies.responses import (
    AchievementShape,
    Answer,
    AvatarShape,
    Identity,
    ItemShape,
    Message,
    Session,
    part,
)
from wsap_nexus.store.entities import DiaryEntry, MessageRecord
from wsap_nexus.worlds.game_info import GameInfo

Json = dict[str, Any]
"""JSON of any form."""


class Gain(Answer):
    """A gain, in a form in which several of one agent can be told in one sentence: `lead`, then the texts."""

    lead: str
    key: str
    """What was gained; a later gain with the same key replaces an earlier one."""
    text: str


class LoggedEvent(Answer):
    """An event with its sentence; without its agent's token, its body has only public fields."""

    seq: int
    kind: str
    agent_id: str | None
    game: str | None
    session_id: str | None
    time: float
    """Seconds since 1970."""
    body: Json
    sentence: str
    name: str | None
    """The name of its agent."""
    minor: bool
    """Whether live views and summaries leave it out."""
    gain: Gain | None


class LogPage(Answer):
    """Events, newest first."""

    events: list[LoggedEvent]


class Stay(Answer):
    """An agent's live session; what it does is only for those who may see its private data."""

    agent: str
    game: str
    world: str
    run: str
    session: str
    seat: str
    opened: str
    paused: bool
    leaving: bool
    steps: int | None = None
    reward: float | None = None
    achieved: int | None = None
    """The number of achievements."""
    action: str | None = None
    """Its last action, in words."""
    reasoning: str | None = None
    success: bool | None = None
    outcome: str | None = None
    message: str | None = None
    gained: float | None = None
    """The reward of its last action."""
    achievements: list[str] | None = None
    """What it achieved by its last action."""
    forced: bool | None = None
    cause: str | None = None


class AgentPage(Answer):
    """Agents by id."""

    agents: list[Identity]
    decides: dict[str, list[str]]
    """Agent -> who decides for it: installed agents, or `external` for a client."""
    stays: dict[str, Stay]
    """Agent -> its live session, of those in worlds."""
    next: str | None
    """The `after` of the next page."""


class PastSession(Session):
    """A session of an agent in a world; without the agent's token, `terms` and `stats` are omitted."""

    ended: str | None
    """Why it ended, in words; `null` while it is open."""


class UsageOfDay(Answer):
    """What models were used for in the last 24 hours."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """In US dollars; `null` if any part of it is unknown."""
    partial: bool
    """Whether there were too many runs to add up all of them."""


class SessionPage(Answer):
    """An agent's sessions, newest first."""

    sessions: list[PastSession]
    spent: dict[str, Usage]
    """Session -> what models were used for in its run."""
    next: str | None
    """The `before` of the next page."""


# --- the overview ---------------------------------------------------------------------------------


class Counts(Answer):
    """Numbers of a nexus."""

    agents: int
    in_worlds: int
    in_nexus: int
    paused: int
    sessions: int
    worlds: int
    events: int
    on_the_way: int
    """Agents that are entering or leaving a world."""
    playing: int


class WorldCard(Answer):
    """A world that is occupied, or that lives by itself."""

    id: str
    game: str
    title: str
    run: str
    draws: bool
    """Whether it has a view."""
    stays: list[Stay]
    lives: bool
    """Whether it goes on without agents."""


class OnTheWay(Answer):
    """An agent on its way into a world or out of one."""

    agent: str
    kind: Literal["enter", "leave"]
    world: str | None


class Attention(Answer):
    """Something that a person should look at."""

    kind: Literal["agent", "clock", "game", "machine", "world"]
    """What it is about."""
    id: str
    name: str
    what: str
    """One sentence."""


class NexusHealth(Answer):
    """How a nexus does."""

    since: float
    """When it was started, in seconds since 1970."""
    database_bytes: int | None
    version: str
    held: str
    """Why agents are held, such as a full disk; empty if they are not."""
    decisions: int
    """Decisions in worlds since the start."""
    rate: float
    """Decisions per second in worlds."""


class Overview(Answer):
    """What a person sees first."""

    now: float
    """Seconds since 1970."""
    seq: int
    """The number of the newest event."""
    counts: Counts
    worlds: list[WorldCard]
    more_worlds: int
    """The number of worlds left out."""
    nexus: list[Identity]
    """Agents in the nexus."""
    names: dict[str, str]
    """Agent -> name, of those in `worlds`."""
    transit: list[OnTheWay]
    recent: list[LoggedEvent]
    attention: list[Attention]
    games: list[GameInfo]
    spent: UsageOfDay
    health: NexusHealth


# --- the stage ----------------------------------------------------------------------------------


class OnStage(Answer):
    """The world that a spectator is shown."""

    world: str
    since: float
    """Seconds since 1970."""
    reason: str
    """Why, in words."""
    agent: str | None
    """The agent to look at; `null` if there is none in it."""


class OneOnStage(Answer):
    """An agent in a world."""

    id: str
    name: str
    seat: str
    paused: bool


class StageWorld(Answer):
    """A world that is occupied, or that lives by itself."""

    id: str
    game: str
    title: str
    run: str
    draws: bool
    """Whether it has a view."""
    lives: bool
    """Whether it goes on without agents."""
    heat: float
    """How much happens in it: moments weigh up to 100 each, and half every 15 seconds."""
    told: str
    """Its latest moment in words; empty if there is none."""
    agents: list[OneOnStage]


class AtHome(Answer):
    """An agent in the nexus."""

    id: str
    name: str
    state: str


class MomentShape(Answer):
    """Something that happened to an agent in a world."""

    time: float
    """Seconds since 1970."""
    world: str
    agent: str
    name: str
    """The agent's name."""
    kind: str
    """`died`, `meta_goal_reached`, `achievement`, `again` (one that it has achieved before), `brought_home`, `talked`,
    `hit`, `entered` or `left`."""
    words: str
    run: str
    step: int | None
    """The number of the decision in the run, from 1; `null` if it is unknown."""


class StageAnswer(Answer):
    """What is on stage."""

    now: float
    """Seconds since 1970."""
    on_stage: OnStage | None
    """`null` if no world is occupied or lives."""
    worlds: list[StageWorld]
    """The one on stage first, then those with most agents."""
    more_worlds: int
    """The number of worlds left out."""
    home: list[AtHome]
    moments: list[MomentShape]
    """Newest first."""


class MomentOfRun(Answer):
    """Something worth telling that happened to a player of a run."""

    position: int
    """The number of the step among those of all seats, from 1."""
    seat: str
    step: int
    """The number of the seat's decision in the run, from 1."""
    time: float
    """Seconds since 1970."""
    kind: str
    """`achievement`, `again` (one that it has achieved before), `died` or `hit`."""
    weight: float
    """How much it draws the eye, from 0 to 100."""
    words: str


class MomentsOfRun(Answer):
    """The moments of a run."""

    moments: list[MomentOfRun]
    """In their order."""
    more: int
    """The number of those left out, which weigh less."""


class Curve(Answer):
    """A value over the steps of a run, in parts of equal length."""

    name: str
    kind: Literal["reward", "meter"]
    low: list[float]
    """The lowest value of each part."""
    high: list[float]


class CurvesOfRun(Answer):
    """The curves of a run."""

    curves: list[Curve]
    steps: int
    remark: str
    """Why there are none."""


# --- passes -------------------------------------------------------------------------------------


class PassShape(Answer):
    """A pass, with which somebody without a token sees one world or one agent, or plays as one."""

    id: str
    scope: Literal["world", "agent", "seat"]
    target: str
    """The id of the world or agent."""
    talks: bool
    """Whether its holder may talk to the agent."""
    created: str
    expires: float
    """Seconds since 1970."""
    revoked: bool


class PassList(Answer):
    """The passes that are valid, newest first."""

    passes: list[PassShape]


class NewPassAnswer(Answer):
    """A new pass with its token, which is told only here."""

    made: PassShape
    token: str
    host: str
    """The address that the nexus listens on."""
    address: str
    """The page with the pass, if `page` was given; otherwise empty."""
    qr: str
    """That address as a QR code, a data URI of a PNG; empty without it."""


class KeyAnswer(Answer):
    """A key that unlocks the page once."""

    fragment: str
    """What follows the page's address."""
    host: str
    """The address that the nexus listens on."""


class PassAnswer(Answer):
    """What a pass opens."""

    scope: Literal["world", "agent", "seat"]
    target: str
    name: str
    """The name of the agent, or the title of the world's game."""
    title: str
    """The title of the game in the world; empty while the agent is at home."""
    talks: bool
    expires: float
    """Seconds since 1970."""
    agents: list[str]
    """The names of the agents in the world."""


class PassTalk(Answer):
    """An agent's answer to the holder of a pass."""

    text: str
    how: str
    """`words` or `facts` for an answer now; `whisper` or `letter` if it hears the message later."""


# --- worlds -------------------------------------------------------------------------------------


class WorldRow(Answer):
    """A world in a list."""

    id: str
    game: str
    owner: str | None
    """The agent that it belongs to; `null` for a shared one."""
    created: str
    failures: int
    agents: list[str]
    """The agents in it."""
    lives: bool
    """Whether it goes on without agents."""


class WorldPage(Answer):
    """Worlds, newest first."""

    awake: list[WorldRow]
    """Those that are occupied or live by themselves, on the first page."""
    worlds: list[WorldRow]
    names: dict[str, str]
    """Agent -> name."""
    next: str | None
    """The `before` of the next page."""


class WorldShape(Answer):
    """A world."""

    id: str
    game: str
    owner: str | None
    seed: int | None
    """For the owner of the nexus only, as roles depend on it."""
    created: str
    failures: int


class AvatarInWorld(Answer):
    """An avatar in a world; without the owner's token, `data` has only its name."""

    id: str
    agent_id: str
    state: str
    data: Json


class WorldAnswer(Answer):
    """A world, and who is and was in it."""

    world: WorldShape
    game: GameInfo | None
    """`null` if the game is not here."""
    lives: bool
    """Whether it goes on by itself now."""
    over: bool
    """Whether it has ended, so that nobody can enter."""
    look_back: str
    """A command that shows the finished run; empty if there is none."""
    run: str | None
    """The run that is recorded now, else that of its last session."""
    stays: list[Stay]
    avatars: list[AvatarInWorld]
    sessions: list[PastSession]
    names: dict[str, str]
    """Agent -> name."""


class WorldView(Answer):
    """The current view of a world."""

    view: Annotated[Message, part("View")] | None
    remark: str
    """Why there is no view; empty if there is one."""


# --- runs ---------------------------------------------------------------------------------------


class PlayerShape(Answer):
    """An agent of the nexus that played a run."""

    id: str
    name: str
    world: str


class RunRow(Answer):
    """A run in a list; without the owner's token, without reward and achievements."""

    id: str
    game: str
    agent: str
    """Its agents with their models."""
    status: str
    """`playing`, `running` in another process, `finished`, `interrupted` or `failed`."""
    created: str
    players: list[PlayerShape]
    steps: int | None
    reward: float | None
    achievements: int
    usage: Json | None


class RunPage(Answer):
    """Runs, newest first."""

    runs: list[RunRow]
    next: str | None
    """The `before` of the next page."""


class SeatShape(Answer):
    """A seat of a run."""

    name: str
    agent: str
    """The agent that decided for it, with its model."""


class RunShape(Answer):
    """A run."""

    id: str
    game: str
    title: str
    seed: int | None
    """For the owner only."""
    status: str
    created: str
    updated: str
    seats: list[SeatShape]
    summary: Json | None
    """What `wsap play --json` prints; for the owner only."""
    version: str
    """The version of wsap-nexus that started it."""
    look_back: str
    """A command that shows it, if it is finished and its game has one."""


class RunAnswer(Answer):
    """A run, its agents, and its number of steps."""

    run: RunShape
    playing: bool
    players: list[PlayerShape]
    steps: int
    views: bool
    """Whether its game has a view of a whole run."""
    remark: str
    """Why it can't be read completely; empty if it can."""


class StepRow(Answer):
    """A step in a list."""

    seq: int
    """The number of its event in the run."""
    seat: str | None
    episode: int
    number: int
    """Its number in the episode, from 1."""
    action: str
    reasoning: str
    success: bool
    outcome: str
    message: str
    reward: float
    achievements: list[str]
    done: bool
    forced: bool
    cause: str
    """Why it was forced."""
    repaired: bool
    chosen: bool
    tokens: int | None
    cost: float | None


class StepPage(Answer):
    """Steps, oldest first."""

    steps: list[StepRow]
    first: int | None
    """The position of the first of them in the run, from 0."""
    total: int


class ActionShape(Answer):
    """An action."""

    name: str
    parameters: Json


class ObservationShape(Answer):
    """An observation as values, text and view."""

    kind: str
    text: str
    view: Annotated[Message, part("View")] | None
    status: Json
    meters: dict[str, float]
    """Numbers of the status that are drawn as bars -> the highest value of each."""
    inventory: Json
    location: Json | None
    step: int
    time_of_day: str | None
    events: list[str]
    goals: list[Json]
    messages: list[Annotated[Message, part("AgentMessage")]]


class StepAnswer(Answer):
    """One decision: what was seen, what was decided and why, and what followed."""

    step: StepRow
    position: int
    """Its position in the run, from 0."""
    time: float
    action: ActionShape
    reasoning: str
    message: str
    decision: Json | None
    """How it was made: model, tokens, what had to be repaired."""
    seen: ObservationShape | None
    """What the agent decided on."""
    after: ObservationShape | None
    behind: list[Json]
    """Model calls, tools, failures and lessons, in order: `kind`, `seq`, and what the kind has."""
    plan: list[str]
    """The agent's last plan before the step."""


class PromptMessage(Answer):
    """A message of a prompt."""

    role: str
    text: str


class Conversation(Answer):
    """The whole prompt of one model call."""

    messages: list[PromptMessage]
    whole: bool
    """Whether its beginning is available."""


class ViewOfRun(Answer):
    """A game's view of a run."""

    view: Annotated[Message, part("View")] | None
    remark: str


# --- minds --------------------------------------------------------------------------------------


class MemoryShape(Answer):
    """A memory and where it comes from."""

    text: str
    kind: str
    world: str
    step: int | None = None
    run: str


class Lesson(Answer):
    """What an agent learned in a session."""

    text: str
    run: str
    game: str
    step: int
    time: float


class Memories(Answer):
    """What an agent remembers."""

    core: list[str]
    strategies: list[str]
    in_mind: list[MemoryShape]
    """Its current memory, or what it keeps between sessions."""
    lessons: list[Lesson]
    """Of its last sessions, newest first."""
    diary: list[DiaryEntry]


class Now(Answer):
    """What an agent saw and planned last."""

    stay: Stay | None
    """`null` unless it is in a world."""
    observation: ObservationShape | None
    plan: list[str]
    planned: int = Field(default=0)
    """The number of steps of the plan that are done."""


class EvidenceShape(Answer):
    """What raised a skill."""

    domain: str
    game: str
    source: str
    times: int
    gained: float


class MetaGoalShape(Answer):
    """A goal that an agent pursues over several worlds."""

    id: str
    description: str
    state: str
    progress: str
    share: float
    """How much of it is reached, from 0 to 1."""


class Whole(Answer):
    """An agent; without its token, only its public fields, `stay`, `sessions`, `visits` and `spent`."""

    agent: Identity
    stay: Stay | None
    """`null` unless it is in a world."""
    sessions: list[PastSession]
    """The last ones."""
    visits: dict[str, int]
    """Game -> the number of its sessions."""
    spent: dict[str, Usage]
    """Session -> what models were used for in its run."""
    skills: dict[str, float] = Field(default_factory=dict)
    """Domain -> level, from 0 to 1."""
    evidence: list[EvidenceShape] = Field(default_factory=list)
    items: list[ItemShape] = Field(default_factory=list)
    avatars: list[AvatarShape] = Field(default_factory=list)
    achievements: list[AchievementShape] = Field(default_factory=list)
    meta_goals: list[MetaGoalShape] = Field(default_factory=list)
    letters: list[MessageRecord] = Field(default_factory=list)
    """Messages between it and other agents; what people say is at `/talk`."""
    failure: str = ""
    """Why it is paused, if it failed."""
    in_doubt: list[UnresolvedTransfer] = Field(default_factory=list)
    """Transfers whose outcome is unknown, which a person can settle."""
