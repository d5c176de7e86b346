"""The methods that the author of a one-body game overrides, and the state that the kit keeps for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from wsap_core.authoring.body import Body, Session
from wsap_core.authoring.guarded import Guarded
from wsap_core.authoring.item_ledger import ItemLedger, Refused
from wsap_core.protocol import Action, ActionResult, Avatar, EmbodiedObservation, PortableItem, RespawnOption
from wsap_core.protocol.spatial import entity_line
from wsap_core.protocol.transit import Bonus, TransferRule
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.game import AvatarGameAdapter

NEW_EPISODE = RespawnOption(
    id="anew",
    type="spawn_point",
    location="the beginning of another episode",
    penalties=("lose_inventory",),
    description="Start again, with nothing.",
)
"""The respawn option of a game that declares none."""


_STATE = {"body": Body, "items": ItemLedger, "session": Session, "gifts": Counter, "steps": int, "done": bool}
"""What the author may set, too."""


class AuthoredGame(Guarded, AvatarGameAdapter, keeps={**_STATE, "death": tuple}):
    """The methods that an author overrides: `begin`, `play` and `observe` always, the others as needed."""

    game_id: ClassVar[str]
    """The game's name in its spec."""
    transfer_rules: ClassVar[Sequence[TransferRule]] = ()
    """The same as in its spec."""
    way_back: ClassVar[RespawnOption] = NEW_EPISODE
    """The respawn option of a dead body; it always starts another episode."""

    headers: ClassVar[Sequence[bytes]] = ()
    """First bytes of the supported snapshots, the current format first; empty for the kit's format."""

    def __init__(self) -> None:
        self.body = Body()
        self.items = ItemLedger()
        self.session = Session()
        self.gifts: Counter[str] = Counter()
        """Total bonuses of this body, by name."""
        self.steps = 0
        """Steps of this episode."""
        self.done = False
        """Whether the episode is over; set it, or call `die`."""
        self.death: tuple[str, str | None] = ("", None)
        """Cause of death and killer; the cause is empty while the body lives."""

    # --- play -------------------------------------------------------------------------------------

    def begin(self, seed: int | None) -> None:
        """Start the first episode of a seed, or with None the next one of the current seed."""
        raise NotImplementedError

    def refusal(self, action: Action) -> str:
        """Return why a declared action is illegal now, or an empty text; by default all are legal."""
        return ""

    def play(self, action: Action) -> ActionResult:
        """Carry out a legal action; `steps` counts it already."""
        raise NotImplementedError

    def observe(self) -> EmbodiedObservation:
        """Return the observation, with `self.avatar(...)` as the body and `self.possible()` as the available actions.
        It is called often: a game with expensive observations caches the last one until `changed` or a step."""
        raise NotImplementedError

    def changed(self) -> None:
        """Called when the body, its state or its items changed outside of `begin` and `play`."""

    def gesture(self, action: Action) -> tuple[bool, str]:
        """Carry out an avatar action of the protocol, without a step; return whether it worked, and the message."""
        if action.name == "emote":
            return False, "This body has no gestures."
        if action.name != "look":
            return False, f"The runtime carries out {action.name}; it is not a step of the game."
        target = str(action.parameters.get("target") or "")
        seen = self.observe().nearby_entities
        lines = [entity_line(e) for e in seen if not target or target in (e.direction, e.type, e.name)]
        message = "; ".join(lines) or f"There is nothing of note{f' ({target[:60]})' if target else ''}."
        return True, message

    # --- bodies and items -------------------------------------------------------------------------

    def settle(self, *, spawn: str = "", loadout: str = "", difficulty: str = "") -> None:
        """Apply the terms of an entry that `AdapterSpec.terms` declares: `spawn` and `loadout` of a new body, before
        its first step, or the `difficulty` of each entry; empty where it is about the other."""

    def danger(self) -> str:
        """Return why the agent must not leave the body now, or an empty text."""
        return ""

    def sleep(self, steps: int) -> Sequence[str]:
        """Let time pass for a dormant body, and return what happened to it, for its agent."""
        return ()

    def give(self, bonus: Bonus) -> JsonValue:
        """Apply a skill's bonus, and return what changed (empty for nothing); by default it is added to `gifts`."""
        self.gifts[bonus.name] += int(bonus.amount)
        return {bonus.name: int(bonus.amount)}

    def thing_for(self, item: PortableItem) -> str | Refused:
        """Return the thing that an item becomes here, or why it is refused; earlier items are in `self.items.kept`."""
        return Refused("items from other games are not accepted here")

    def take_out(self) -> Sequence[PortableItem]:
        """Remove the game's own portable things from the body and return them; the kit assigns their ids. Items that
        came with the agent are in `self.items`, and leave after this."""
        return ()

    # --- snapshots --------------------------------------------------------------------------------

    def dump(self) -> JsonValue:
        """Return the game's state as JSON-ready data."""
        raise NotImplementedError

    def load(self, data: JsonValue) -> None:
        """Restore the state of `dump` from untrusted data. If this raises, the kit loads the previous state again.

        Raises:
            ValueError, TypeError, LookupError, AttributeError, ArithmeticError: the data is invalid.
        """
        raise NotImplementedError

    def upgrade(self, header: bytes, data: dict[str, JsonValue]) -> None:
        """Convert the data of a snapshot with one of the older `headers` to the current layout, in place."""

    # --- for the author to call -------------------------------------------------------------------

    def avatar(self, **known: Any) -> Avatar:
        """Return the avatar with the given `position`, `health`, `inventory` ... (fields of `Avatar`)."""
        return self.body.avatar(self.game_id, self.steps, **known)
