"""Events about sessions, transfers, avatars and items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, JsonValue
from typing_extensions import override

from wsap_core.protocol import DeathEvent
from wsap_core.protocol.wire import encode
from wsap_nexus.store.events.base import (
    BY_ID,
    AgentEvent,
    Gain,
    GainEvent,
    Names,
    because,
    count,
    listed,
    place,
    plain,
    short,
)
from wsap_nexus.store.events.endings import why_ended

WorldText = Annotated[str, BeforeValidator(str)]
"""Text from a world. Other values become text, so that an invalid one can't keep an agent in the world."""


class Entered(AgentEvent):
    """An agent entered a world: its session is open."""

    PUBLIC = frozenset({"world", "run", "respawned", "woken"})
    kind: Literal["entered"] = "entered"
    world: str = ""
    run: str = ""
    avatar: str = ""
    respawned: bool = False
    """Whether its avatar had died and was respawned."""
    woken: bool = False
    """Whether its avatar existed already and was alive."""
    bonuses: Mapping[str, JsonValue] = {}
    """Transfer rule -> the change of the avatar."""
    notes: Sequence[WorldText] = ()
    """What happened to the avatar in the meantime."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        how = "came back to life in" if self.respawned else "woke up in" if self.woken else "entered"
        bonuses = listed(map(plain, self.bonuses), 6)
        return f"{names.who(self.agent_id)} {how} {place(self.game)}{f' (bonuses: {bonuses})' if bonuses else ''}"


class Left(AgentEvent):
    """An agent returned to the nexus: its session is closed."""

    PUBLIC = frozenset({"world", "run", "reason", "steps"})
    kind: Literal["left"] = "left"
    world: str = ""
    run: str = ""
    reason: str | None = None
    """See `wsap_nexus.store.events.endings`."""
    steps: int = 0
    """Its decisions in the session."""
    reward: float = 0.0
    achievements: Sequence[str] = ()
    done: Mapping[str, int] = {}
    """`achievement:NAME` and `action:NAME` -> number of successes."""
    avatar_state: str = ""
    items: Sequence[str] = ()
    """The ids of the items that it brought back."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        told = f"{names.who(self.agent_id)} left {place(self.game)} after {count(self.steps, 'decision')}"
        achieved = listed(map(plain, self.achievements), 6)
        return f"{told}: {why_ended(self.reason)}{f'; achieved {achieved}' if achieved else ''}"


class SessionResumed(AgentEvent):
    """A session that was open when the nexus stopped was resumed."""

    PUBLIC = frozenset()
    TOLD = "{who} resumed playing in {place}"
    kind: Literal["resumed"] = "resumed"


class Died(AgentEvent):
    """An agent's avatar died."""

    PUBLIC = frozenset()
    kind: Literal["died"] = "died"
    death_avatar_id: WorldText = ""
    death_cause: WorldText = ""
    death_killer: WorldText | None = None
    death_location: JsonValue = None
    death_timestamp: JsonValue = ""
    """In the world's time."""
    death_items_dropped: JsonValue = None
    """Item -> number."""
    death_xp_lost: JsonValue = 0.0
    death_respawn_options: Sequence[Mapping[str, JsonValue]] = ()
    """Empty if death is final."""

    @classmethod
    def of(cls, death: DeathEvent, *, agent_id: str, game: str, session_id: str | None = None) -> Died:
        """Return the event of a death reported by a world."""
        told = {f"death_{name}": value for name, value in encode(death).items()}
        return cls.model_validate({**told, "agent_id": agent_id, "game": game, "session_id": session_id})

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        killer = f", killed by {short(self.death_killer, 80)}" if self.death_killer else ""
        cause = f" of {short(self.death_cause, 80)}" if self.death_cause else ""
        return f"{names.who(self.agent_id)} died{cause} in {place(self.game)}{killer}"


class AvatarChanged(AgentEvent):
    """The state of an agent's avatar changed."""

    PUBLIC = frozenset({"world", "avatar", "state"})
    TOLD = "{whose} avatar in {place} is {state}"
    kind: Literal["avatar_changed"] = "avatar_changed"
    world: str = ""
    avatar: str = ""
    state: str

    @property
    @override
    def minor(self) -> bool:
        return True  # deaths, entries and exits have events of their own


class VisitStarted(AgentEvent):
    """An agent with a language model started a visit to the nexus."""

    PUBLIC = frozenset({"run"})
    TOLD = "{who} started a visit to the nexus"
    kind: Literal["visiting"] = "visiting"
    run: str

    @property
    @override
    def minor(self) -> bool:
        return True


class OnwardRefused(AgentEvent):
    """An agent could not go directly from one world to another."""

    PUBLIC = frozenset({"destination"})
    TOLD = "{who} could not go on to {destination:80}{because}"
    kind: Literal["onward_refused"] = "onward_refused"
    destination: str
    why: str = ""


# --- failures -------------------------------------------------------------------------------------


class EntryRefused(AgentEvent):
    """A world did not let an agent in or failed; the agent is still in the nexus."""

    PUBLIC = frozenset({"world"})
    TOLD = "{place} did not let {them} in{because}"
    kind: Literal["entry_refused"] = "entry_refused"
    world: str = ""
    error: str = ""


class EndedWithoutWorld(AgentEvent):
    """A session ended without its world."""

    PUBLIC = frozenset({"world", "run", "reason", "kept"})
    world: str = ""
    run: str = ""
    reason: str | None = None
    """Why the session ended; see `wsap_nexus.store.events.endings`."""
    error: str = ""
    kept: bool = False
    """Whether the world's last saved state is kept."""


class WorldCrashed(EndedWithoutWorld):
    """A world failed while an agent played in it; the session is closed and the agent is back in the nexus."""

    TOLD = "{place} crashed during {their} session{because}"
    kind: Literal["world_crashed"] = "world_crashed"


class SessionForceClosed(EndedWithoutWorld):
    """A session was closed by force, because its world could not be reached."""

    TOLD = "{whose} session in {place} was closed by force{because}"
    kind: Literal["brought_home"] = "brought_home"


class TransferCancelled(AgentEvent):
    """An agent's transfer into a world was cancelled: it is in the nexus with all its items."""

    PUBLIC = frozenset({"transfer"})
    TOLD = "{whose} transfer was cancelled{because}"
    kind: Literal["transfer_cancelled"] = "transfer_cancelled"
    transfer: str = ""
    why: str = ""


class TransferUnresolved(AgentEvent):
    """It is unknown whether a game in another process admitted an agent's items."""

    PUBLIC = frozenset({"transfer"})
    TOLD = "The outcome of {their} transfer to {place} is unknown{because}"
    kind: Literal["transfer_in_doubt"] = "transfer_in_doubt"
    transfer: str = ""
    why: str = ""


class TransferSettled(AgentEvent):
    """A person decided the outcome of an unresolved transfer."""

    PUBLIC = frozenset({"transfer", "outcome"})
    TOLD = "{whose} transfer to {place} was settled by a person: the items have {outcome}"
    kind: Literal["transfer_settled"] = "transfer_settled"
    transfer: str = ""
    outcome: str
    """"arrived" or "returned"."""
    items: Sequence[str] = ()
    to: str = ""
    """Where the items are now: "escrow", "world" or "lost"."""


# --- items ----------------------------------------------------------------------------------------

_WENT = {
    "escrow": "returned to escrow",
    "transfer": "went into transfer",
    "world": "went into a world",
    "lost": "lost",
}
"""Place -> the predicate of "X" or "3 items of X"."""


class ItemFound(GainEvent):
    """An agent got a new item."""

    kind: Literal["item_found"] = "item_found"
    item: Mapping[str, JsonValue]
    """The `PortableItem` of the protocol."""

    @override
    def gained(self, names: Names) -> Gain:
        name, item_id = str(self.item.get("name", "an item")), str(self.item.get("item_id"))
        return Gain(f"{names.who(self.agent_id)} brought back from {place(self.game)}:", item_id, plain(name))


class Moved(AgentEvent):
    """Items of an agent moved."""

    to: str
    """"escrow", "transfer", "world" or "lost"."""
    to_id: str | None = None
    """The transfer or the world."""
    why: str = ""

    @property
    @override
    def minor(self) -> bool:
        return self.to != "lost"


class ItemMoved(Moved):
    """An item moved from one place to another."""

    kind: Literal["item_moved"] = "item_moved"
    item_id: str
    name: str = ""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        went = "was lost" if self.to == "lost" else _WENT.get(self.to, plain(self.to))
        return f"{names.whose(self.agent_id)} {plain(self.name or self.item_id)} {went}{because(self.why)}"


class ItemsMoved(Moved):
    """Several items moved from one place to another."""

    kind: Literal["items_moved"] = "items_moved"
    items: Sequence[str] = ()
    """Their ids."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        went = "were lost" if self.to == "lost" else _WENT.get(self.to, plain(self.to))
        return f"{count(len(self.items), 'item')} of {names.them(self.agent_id)} {went}{because(self.why)}"


class ItemsRefused(AgentEvent):
    """A world returned items that do not belong to the agent; they were refused."""

    TOLD = "{place} returned items that do not belong to {them}"
    kind: Literal["items_refused"] = "items_refused"
    items: Mapping[str, str] = {}
    """Item id -> reason."""
