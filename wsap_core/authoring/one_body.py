"""The base class of games of one player, with bodies, transit and snapshots.

`AuthoredGame` lists the methods that the author writes, `GameWithBody` keeps the body, and this module plays and saves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from pydantic import StrictBool
from typing_extensions import override

from wsap_core.authoring.authored import AuthoredGame
from wsap_core.authoring.bodies import GameWithBody
from wsap_core.authoring.body import Body, Session
from wsap_core.authoring.item_ledger import ItemLedger, Refused
from wsap_core.authoring.packing import WRONG_DATA, Count, pack, read, unpack
from wsap_core.errors import SnapshotError
from wsap_core.protocol import AVATAR_ACTIONS, Action, ActionAvailability, ActionDef, ActionResult, AvatarState
from wsap_core.protocol.values import JsonValue
from wsap_core.worlds.legality import check_action, index_actions

__all__ = ["AuthoredGame", "GameWithBody", "OneBodyGame", "Refused"]

_GESTURES = frozenset(AVATAR_ACTIONS.names)


class OneBodyGame(GameWithBody, keeps={}):
    """A game of one seat and one body; override the methods of `AuthoredGame`, and call `reset` at the end of
    `__init__`. Its abilities are `seed`, `avatars`, `transit`, and with `dump` and `load` also `snapshot`."""

    @override
    def act(self, action: Action) -> ActionResult:
        """Carry out an action as one step, or refuse it with a reason and without a step."""
        if self.done:
            return self._refuse("The episode is over; nothing can be done until the next one begins.")
        body = self.body
        if body.state not in (AvatarState.BOUND, AvatarState.UNBOUND):
            return self._refuse(f"Nobody is in the body: {body.avatar_id} is {body.state.value}. Jack in first.")
        if action.name in _GESTURES and action.name not in self._declared:
            success, message = self.gesture(action)
            return ActionResult(success, message, observation=self.observe())
        action, why = check_action(action, self._declared)
        why = why or self.refusal(action)
        if why:
            return self._refuse(f"That does not work: {why}")
        self.steps += 1
        result = self.play(action)
        self.session.add(result)
        return result

    def possible(self) -> list[ActionAvailability]:
        """Return the availability of all actions, by the rules of `act`."""
        over = "the episode is over" if self.done else ""
        reasons = ((name, over or self.refusal(Action(name))) for name in self.action_space.names)
        return [ActionAvailability(name, not why, why) for name, why in reasons]

    @cached_property
    def _declared(self) -> dict[str, ActionDef]:
        return index_actions(self.action_space)

    def _refuse(self, message: str) -> ActionResult:
        return ActionResult(False, message, done=self.done, observation=self.observe())

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state: the game, the body, the items, and the answers to transfers."""
        return pack(self._headers()[0], self.to_json())

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is not a valid one of this game, and nothing has changed."""
        current = self._headers()[0]
        header = next((older for older in self._headers() if data.startswith(older)), current)
        state = unpack(header, data, self.game_id)
        try:
            if header != current:
                self.upgrade(header, state)
            self.load_json(state)
        except WRONG_DATA as error:
            raise SnapshotError(f"The snapshot of {self.game_id} is damaged: {error}.") from error
        self.changed()

    def _headers(self) -> Sequence[bytes]:
        return self.headers or (f"WSAP {self.game_id} 1\n".encode(),)

    def to_json(self) -> JsonValue:
        """Return the state for a snapshot; override it with `load_json` for another layout."""
        return {
            "body": self.body.to_json(),
            "luggage": self.items.to_json(),
            "gifts": dict(self.gifts),
            "episode": [self.steps, self.done, *self.death],
            "session": self.session.to_json(),
            "game": self.dump(),
        }

    def load_json(self, data: JsonValue) -> None:
        """Restore the state of `to_json` from untrusted data.

        Raises:
            ValueError, TypeError, LookupError, AttributeError, ArithmeticError: it is invalid; nothing has changed.
        """
        body, items = Body.from_json(data["body"]), ItemLedger()
        items.load_json(data["luggage"], {rule.id for rule in self.transfer_rules})
        steps, done, cause, killer = read(tuple[Count, StrictBool, str, str | None], data["episode"])
        gifts = Counter(read(dict[str, Count], data["gifts"]))
        if not gifts.keys() <= {rule.bonus.name for rule in self.transfer_rules}:
            raise ValueError("the gifts are not ones that this game gives")
        session = Session.from_json(data["session"])
        before = self.body, self.items, self.gifts, self.session, self.steps, self.done, self.death
        game = self.dump()
        self.body, self.items, self.gifts, self.session = body, items, gifts, session
        self.steps, self.done, self.death = steps, done, (cause, killer)
        try:
            self.load(data["game"])
        except WRONG_DATA:
            self.body, self.items, self.gifts, self.session, self.steps, self.done, self.death = before
            self.load(game)
            raise
