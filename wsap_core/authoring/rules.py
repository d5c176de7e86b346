"""What the author of a game of several seats writes."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from random import Random
from typing import ClassVar

from wsap_core.protocol import Action, ActionAvailability, ActionDef, ActionSpace, Observation, View
from wsap_core.protocol.availability import choices_of
from wsap_core.protocol.values import JsonValue
from wsap_core.sampling import sample
from wsap_core.seams.context import derive_seed
from wsap_core.specs import Timing
from wsap_core.worlds.legality import check_action, index_actions, narrowed

OVER = "The game is over."


class GameRules:
    """The methods that an author overrides: those from `begin` to `load` always, the others as needed."""

    seats: Sequence[str]
    """The names of the seats, in their fixed order."""
    game_description: str
    """The rules, as every seat is told them."""
    action_space: ActionSpace
    """All actions of all seats."""
    timing: Timing = "alternating"
    """As in the spec. With `free` every action is a round of its own, and who is not named by `to_move` is done."""
    largest_snapshot: ClassVar[int] = 4_000_000
    """Bytes of JSON that a snapshot may hold."""
    talks: ClassVar[bool] = False
    """Whether seats may send each other messages; they arrive when the round is resolved."""

    zero_sum: bool = False
    """Whether what the seats are paid in an episode adds up to nothing; `wsap check` verifies it."""
    round: int
    """How many rounds of this episode have been applied."""
    seed: int
    """The seed of the first of these episodes."""
    episode: int
    """The number of the episode since that seed was given, from 0."""
    _random: Random | None = None
    _named: tuple[str, ...]

    @property
    def random(self) -> Random:
        """For `begin` and `apply`; seeded anew for each, so that snapshots need not hold its state."""
        if self._random is None:
            self._random = Random(derive_seed(self.seed, self.episode, self.round))
        return self._random

    # --- the rules --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Set up an episode: deal, shuffle and so on, with `self.random`."""
        raise NotImplementedError

    def to_move(self) -> Sequence[str]:
        """Return the seats that decide now: one in turn, several at the same time, none when the game is over."""
        raise NotImplementedError

    def legal(self, seat: str) -> Sequence[str | ActionAvailability]:
        """Return what a seat that is to move can do: names of actions, or `Possible(name, choices=...)`."""
        raise NotImplementedError

    def apply(self, moves: Mapping[str, Action]) -> Awaitable[None] | None:
        """Carry out legal moves of the seats in `to_move`, given in the order of the seats; chance by `self.random`.

        It may be `async`, and take its time; whoever acts meanwhile waits, and a snapshot is that of before.
        """
        raise NotImplementedError

    def see(self, seat: str) -> Observation:
        """Return what a seat perceives, and nothing else; the kit adds the step and the legal actions."""
        raise NotImplementedError

    def returns(self) -> Mapping[str, float]:
        """Return what each seat has been paid in this episode so far; its results bring what it has not been told."""
        raise NotImplementedError

    def dump(self) -> JsonValue:
        """Return the state that `begin` and `apply` change, as JSON-ready data."""
        raise NotImplementedError

    def load(self, data: JsonValue) -> None:
        """Restore the state that `dump` returned. If this raises, the previous state is loaded again.

        Raises:
            ValueError, TypeError, LookupError, AttributeError, ArithmeticError: the untrusted data is wrong.
        """
        raise NotImplementedError

    # --- as needed --------------------------------------------------------------------------------

    def vary_secret(self, seat: str, rng: Random) -> bool:
        """Change, in place, something that only this seat may know; return False where there is nothing to change.

        `wsap check` calls it, compares what all others see before and after, and restores a snapshot.
        """
        return False

    def describe(self, seat: str) -> str:
        """Return what whoever sits there is told of the game, once."""
        return f"{self.game_description}\nYou are {seat}."

    def actions_of(self, seat: str) -> ActionSpace:
        """Return the actions as one seat is told of them: all of them, some perhaps `unlisted`."""
        return self.action_space

    def achieved(self, seat: str) -> Sequence[str]:
        """Return the achievements that go with the result that a seat is about to get."""
        return ()

    def hears(self) -> Sequence[str]:
        """Return seats whose results are held back no longer, besides those to move next; none unless overridden."""
        return ()

    def look_up(self, seat: str, action: Action) -> tuple[bool, str]:
        """Use a tool, an action that takes no turn; return whether it worked, and what it says."""
        return False, f"There is nothing to {action.name}."

    def team_of(self, agent_id: str) -> str | None:
        """Return the name of a seat's team, for messages; None for no team."""
        return None

    def refusal(self, seat: str, action: Action) -> str:
        """Return why a declared action of a seat that is to move is illegal now; empty if it is legal."""
        offer = self._offers(seat).get(action.name)
        if offer is None or not offer.available:
            return (offer.reason if offer else "") or f"{action.name} is not possible now."
        if not (choices := choices_of(offer)):
            return ""
        return check_action(action, {action.name: narrowed(self._declared[action.name], choices)})[1]

    def default_action(self, seat: str) -> Action:
        """Return what is done for a seat whose agent is late or gone: the first legal action, with first choices."""
        offer = next((o for o in self._offers(seat).values() if o.available), None)
        if offer is None:
            return Action(self.action_space.names[0])
        definition = narrowed(self._declared[offer.name], choices_of(offer))
        needed = (p for p in definition.parameters if not p.optional)
        first = {p.name: (p.choices() or (sample(p.json_schema(), Random(0)),))[0] for p in needed}
        return Action(offer.name, first)

    def observation(self, seat: str) -> Observation:
        """Return what `see` does, with the step and what is possible now; override it to set these otherwise."""
        asked = seat in self._named
        offers = self._offers(seat) if asked else {}
        why = "it is not possible now" if asked else "the game is over" if self.done(seat) else "it is not your turn"
        possible = [offers.get(name) or ActionAvailability(name, False, why) for name in self._declared]
        return replace(self.see(seat), step=self.round, available_actions=possible)

    def message(self, seat: str, pay: float) -> str:
        """Return the words of a result that brings so much pay."""
        return (OVER if self.done(seat) else "It is your turn.") + (f" You get {pay:g}." if pay else "")

    def picture(self, seat: str) -> View:
        """Return what one seat sees, drawn; the world's own `render()` is for spectators."""
        return self.observation(seat).to_view()

    def done(self, seat: str) -> bool:
        """Return whether the episode is over for a seat."""
        return not self._named or (self.timing == "free" and seat not in self._named)

    def _offers(self, seat: str) -> dict[str, ActionAvailability]:
        offers = (ActionAvailability(o) if isinstance(o, str) else o for o in self.legal(seat))
        return {offer.name: offer for offer in offers}

    @cached_property
    def _declared(self) -> dict[str, ActionDef]:
        return index_actions(self.action_space)
