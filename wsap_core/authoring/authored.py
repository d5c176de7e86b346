"""What the author of a one-body game writes, and the state that the kit keeps for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from wsap_core.authoring.body import Body, Session
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
    description="Begin anew, with nothing.",
)
"""The respawn option of a game that declares none."""


class AuthoredGame(AvatarGameAdapter):
    """The methods that an author overrides: `begin`, `play` and `observe` always, the others as needed."""

    game_id: ClassVar[str]
    """The game's name in its spec."""
    transfer_rules: ClassVar[Sequence[TransferRule]] = ()
    """The same as in its spec."""
    way_back: ClassVar[RespawnOption] = NEW_EPISODE
    """The respawn option of a dead body; it always begins another episode."""

    headers: ClassVar[Sequence[bytes]] = ()
    """First bytes of the snapshots that can be restored, the current format first; empty for the kit's format."""

    def __init__(self) -> None:
        self.body = Body()
        self.items = ItemLedger()
        self.session = Session()
        self.gifts: Counter[str] = Counter()
        """Total bonuses of this body, by the bonus' name."""
        self.steps = 0
        """Steps of this episode."""
        self.done = False
        """Whether the episode is over; set it, or call `die`."""
        self.death: tuple[str, str | None] = ("", None)
        """Cause of death and killer; the cause is empty while the body lives."""

    # --- play -------------------------------------------------------------------------------------

    def begin(self, seed: int | None) -> None:
        """Begin the first episode of a seed; with None the next one of the current seed."""
        raise NotImplementedError

    def refusal(self, action: Action) -> str:
        """Return why a declared action is illegal now; empty if it is legal.

        Every action is legal unless this is overridden, and one that fails takes a step.
        """
        return ""

    def play(self, action: Action) -> ActionResult:
        """Carry out a legal action; `steps` counts it already."""
        raise NotImplementedError

    def observe(self) -> EmbodiedObservation:
        """Return what is perceived now, with `self.avatar(...)` as the body and `self.possible()` as the legal actions.

        It is called often: a game whose observations are expensive keeps the last one, and drops it in `changed`.
        """
        raise NotImplementedError

    def changed(self) -> None:
        """Called when the body, its state or what it carries changed outside of `begin` and `play`."""

    def gesture(self, action: Action) -> tuple[bool, str]:
        """Answer an avatar action of the protocol, which takes no step: whether it worked, and the message."""
        if action.name == "emote":
            return False, "This body has no gestures."
        if action.name != "look":
            return False, f"The runtime answers {action.name}; it is no step of the game."
        target = str(action.parameters.get("target") or "")
        seen = self.observe().nearby_entities
        lines = [entity_line(e) for e in seen if not target or target in (e.direction, e.type, e.name)]
        message = "; ".join(lines) or f"There is nothing of note{f' ({target[:60]})' if target else ''}."
        return True, message

    # --- bodies and items -------------------------------------------------------------------------

    def danger(self) -> str:
        """Return why the body must not be left here now; empty if it may."""
        return ""

    def sleep(self, steps: int) -> Sequence[str]:
        """Let time pass for a dormant body, and return what happened to it, for its agent to read."""
        return ()

    def give(self, bonus: Bonus) -> JsonValue:
        """Apply a skill's bonus, and return what changed; something empty if nothing did.

        Unless overridden it adds to `gifts`, for a game that reads its body's powers from there.
        """
        self.gifts[bonus.name] += int(bonus.amount)
        return {bonus.name: int(bonus.amount)}

    def thing_for(self, item: PortableItem) -> str | Refused:
        """Return the thing that an item becomes in this game, or why it is refused.

        The items accepted before it are in `self.items.kept`.
        """
        return Refused("nothing from elsewhere is let in here")

    def take_out(self) -> Sequence[PortableItem]:
        """Remove the game's own portable things from the body and return them; the kit assigns their ids.

        The things that came with the agent are still in `self.items`, and leave after this returns.
        """
        return ()

    # --- snapshots --------------------------------------------------------------------------------

    def dump(self) -> JsonValue:
        """Return the game's state, as JSON-ready data."""
        raise NotImplementedError

    def load(self, data: JsonValue) -> None:
        """Restore the state that `dump` returned. If this raises, the previous state is loaded again.

        Raises:
            ValueError, TypeError, LookupError, AttributeError, ArithmeticError: the untrusted data is wrong.
        """
        raise NotImplementedError

    def upgrade(self, header: bytes, data: dict[str, JsonValue]) -> None:
        """Change the data of a snapshot with one of the older `headers` to the current layout, in place."""

    # --- for the author to call -------------------------------------------------------------------

    def avatar(self, **known: Any) -> Avatar:
        """Return the body with the given `position`, `health`, `inventory` ... (fields of `Avatar`)."""
        return self.body.avatar(self.game_id, self.steps, **known)
