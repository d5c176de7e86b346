"""The rules that the author of a game of several seats writes."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, product
from random import Random
from typing import ClassVar

from wsap_core.authoring.guarded import Guarded
from wsap_core.protocol import Action, ActionAvailability, ActionDef, ActionSpace, Observation, View
from wsap_core.protocol.availability import choices_of
from wsap_core.protocol.values import JsonValue
from wsap_core.sampling import sample
from wsap_core.seams.context import derive_seed
from wsap_core.specs import Timing
from wsap_core.worlds.legality import check_action, index_actions, narrowed

OVER = "The game is over."
OUT = "You are out of the game."


_TRIED = 100
"""Actions of a name that are tried as a default."""


class GameRules(Guarded, keeps={}):
    """The methods that an author overrides: those from `begin` to `load` always, the others as needed."""

    seats: Sequence[str]
    """The names of the seats, in fixed order."""
    game_description: str
    """The rules, for every seat."""
    action_space: ActionSpace
    """All actions of all seats."""
    timing: Timing = "alternating"
    """As in the spec. With `free`, every action is a round of its own, and seats not in `to_move` are done."""
    largest_snapshot: ClassVar[int] = 4_000_000
    """Most bytes of JSON in a snapshot."""
    talks: ClassVar[bool] = False
    """Whether seats can send messages, which arrive when the round is resolved."""

    zero_sum: bool = False
    """Whether the pay of all seats in an episode adds up to 0; `wsap check` verifies it."""
    round: int
    """Number of rounds of this episode that have been applied."""
    seed: int
    """The seed of episode 0."""
    episode: int
    """Number of the episode since the seed was set, from 0."""
    _random: Random | None = None
    _named: tuple[str, ...]

    @property
    def random(self) -> Random:
        """The generator for `begin` and `apply`, seeded before each call, so that snapshots need not contain it."""
        if self._random is None:
            self._random = Random(derive_seed(self.seed, self.episode, self.round))
        return self._random

    # --- the rules --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Set up an episode, for example shuffle and deal with `self.random`."""
        raise NotImplementedError

    def to_move(self) -> Sequence[str]:
        """Return the seats that decide now: one in turn, several at once, none when the game is over. Those that are
        `out` are left out by the kit."""
        raise NotImplementedError

    def legal(self, seat: str) -> Sequence[str | ActionAvailability]:
        """Return the legal actions of a seat that is to move: names, or `Possible(name, choices=...)`."""
        raise NotImplementedError

    def apply(self, moves: Mapping[str, Action]) -> Awaitable[None] | None:
        """Carry out legal moves of the seats in `to_move`, in the order of the seats, with `self.random` for chance. It
        may be `async` and slow: other calls wait meanwhile, and snapshots have the state before it."""
        raise NotImplementedError

    def see(self, seat: str) -> Observation:
        """Return what a seat perceives; the kit adds the step and the available actions."""
        raise NotImplementedError

    def returns(self) -> Mapping[str, float]:
        """Return the total pay of each seat in this episode; results report what has not been reported."""
        raise NotImplementedError

    def dump(self) -> JsonValue:
        """Return the state that `begin` and `apply` change, as JSON-ready data."""
        raise NotImplementedError

    def load(self, data: JsonValue) -> None:
        """Restore the state of `dump` from untrusted data. If this raises, the kit loads the previous state again.

        Raises:
            ValueError, TypeError, LookupError, AttributeError, ArithmeticError: the data is invalid.
        """
        raise NotImplementedError

    # --- as needed --------------------------------------------------------------------------------

    def vary_secret(self, seat: str, rng: Random) -> bool:
        """Change, in place, something that only this seat may know; return False if there is nothing to change.
        `wsap check` uses it to verify that no other seat perceives the change."""
        return False

    def vary_hidden(self, rng: Random) -> Collection[str] | None:
        """Change, in place, something that is hidden from some seats, such as the order of a deck, or cards that only
        the others see; return the seats that may notice, or None if there is nothing to change. `wsap check` uses it to
        verify that no other seat perceives the change."""
        return None

    def describe(self, seat: str) -> str:
        """Return the description of the game for one seat."""
        return f"{self.game_description}\nYou are {seat}."

    def actions_of(self, seat: str) -> ActionSpace:
        """Return the action space of one seat: all actions, some perhaps `unlisted`."""
        return self.action_space

    def achieved(self, seat: str) -> Sequence[str]:
        """Return the achievements of the next result of a seat."""
        return ()

    def out(self, seat: str) -> bool:
        """Return whether a seat is out for the rest of the episode while others play on. It is not asked any more, gets
        its last result with its pay so far at once, and none for what it is paid later."""
        return False

    def truncated(self, seat: str) -> bool:
        """Return whether a limit of rounds or time has ended the episode for a seat, rather than the rules of the game:
        what trainers call truncated. It is asked when the seat is told of the end."""
        return False

    def hears(self) -> Sequence[str]:
        """Return seats that get their held-back results now, in addition to those to move next."""
        return ()

    def look_up(self, seat: str, action: Action) -> tuple[bool, str]:
        """Carry out an action of the category `tool`; return whether it worked, and its message."""
        return False, f"There is nothing to {action.name}."

    def team_of(self, agent_id: str) -> str | None:
        """Return the name of a seat's team, for messages; None for no team."""
        return None

    def refusal(self, seat: str, action: Action) -> str:
        """Return why a declared action of a seat that is to move is illegal now, or an empty text."""
        offer = self._offers(seat).get(action.name)
        if offer is None or not offer.available:
            return (offer.reason if offer else "") or f"{action.name} is not possible now."
        if not (choices := choices_of(offer)):
            return ""
        return check_action(action, {action.name: narrowed(self._declared[action.name], choices)})[1]

    def default_action(self, seat: str) -> Action:
        """Return the action of a seat whose agent is late or gone: unless overridden, the first legal one that
        `refusal` accepts, among a hundred for each action."""
        asked = seat in self._named
        offers = [offer for offer in self._offers(seat).values() if offer.available] if asked else []
        known = [offer for offer in offers if offer.name in self._declared]
        narrow = [narrowed(self._declared[offer.name], choices_of(offer)) for offer in known]
        for definition in narrow:
            for action in islice(_candidates(definition), _TRIED):
                if not self.refusal(seat, action):
                    return action
        untimely = (a for a in self._declared.values() if not a.is_tool)
        return next(_candidates(next(iter(narrow or untimely), self.action_space.actions[0])))

    def observation(self, seat: str) -> Observation:
        """Return what `see` does, with the step and the available actions."""
        asked = seat in self._named
        offers = self._offers(seat) if asked else {}
        why = "it is not possible now" if asked else "the game is over" if self.done(seat) else "it is not your turn"
        why = "you are out of the game" if self._is_out(seat) else why
        possible = [offers.get(name) or ActionAvailability(name, False, why) for name in self._declared]
        return replace(self.see(seat), step=self.round, available_actions=possible)

    def message(self, seat: str, pay: float) -> str:
        """Return the message of a result with that pay."""
        words = OUT if self._is_out(seat) else OVER if self.done(seat) else "It is your turn."
        return words + (f" You get {pay:g}." if pay else "")

    def picture(self, seat: str) -> View:
        """Return the view of one seat; the world's `render()` is for spectators."""
        return self.observation(seat).to_view()

    def done(self, seat: str) -> bool:
        """Return whether the episode is over for a seat."""
        return not self._named or (self.timing == "free" and seat not in self._named) or self.out(seat)

    def _is_out(self, seat: str) -> bool:
        return bool(self._named) and self.out(seat)

    def _asked_now(self) -> tuple[str, ...]:
        return tuple(seat for seat in self.to_move() if not self.out(seat))

    def _offers(self, seat: str) -> dict[str, ActionAvailability]:
        offers = (ActionAvailability(o) if isinstance(o, str) else o for o in self.legal(seat))
        return {offer.name: offer for offer in offers}

    @cached_property
    def _declared(self) -> dict[str, ActionDef]:
        return index_actions(self.action_space)


def _candidates(definition: ActionDef) -> Iterator[Action]:
    """Yield actions with the parameters that must be given: the first words, the bounds of numbers, then others."""
    needed = [p for p in definition.parameters if not p.optional]
    drawn = Random(0)
    values = [p.choices() or (*(p.integer_range() or ()), sample(p.json_schema(), drawn)) for p in needed]
    for chosen in product(*values):
        yield Action(definition.name, dict(zip((p.name for p in needed), chosen, strict=True)))
    while needed:
        yield Action(definition.name, {p.name: sample(p.json_schema(), drawn) for p in needed})
