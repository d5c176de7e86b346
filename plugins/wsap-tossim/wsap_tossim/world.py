"""The town as a world of several seats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from typing_extensions import override

from wsap_core.authoring.rounds import RoundGame, RoundSeat
from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionAvailability, ActionSpace, Observation, View
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context
from wsap_tossim.achievements import TELLS_NOTHING, achievements
from wsap_tossim.engine.data.model import Choice, Phase
from wsap_tossim.engine.data.record import WRITINGS
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.history import choices_in, rows_of_choices
from wsap_tossim.knowledge import Knowledge, as_seen
from wsap_tossim.observe import observed
from wsap_tossim.options import TownOptions, seat_name
from wsap_tossim.perception.description import description_of, role_sheet
from wsap_tossim.perception.pictures import town_view
from wsap_tossim.perception.place import Place
from wsap_tossim.tool_use import use
from wsap_tossim.verbs import action_space, choice_of

__all__ = ["Town", "create"]

_ON_THE_FLOOR = (Phase.DISCUSSION, Phase.NOMINATION, Phase.DEFENSE, Phase.LAST_WORDS)
"""The phases in which one player after the other speaks."""


class Town(RoundGame):
    """A game of hidden roles for 5 to 15 seats.

    The dead are asked only if they can still act. Tools are actions that return at once and take no turn.
    """

    timing = "phased"
    largest_snapshot: ClassVar[int] = 64_000_000

    def __init__(self, options: TownOptions, seed: int) -> None:
        self.options = options
        self.names = options.names
        self.seats = tuple(seat_name(i) for i in range(len(options.setup.slots)))
        self.game_description = description_of(options.setup, options.rules)
        self.action_space = action_space(self.names, list(ROLES), options.rules)
        self._described: dict[int, str] = {}
        """Player -> the role in its system prompt."""
        self._spaces: dict[int, ActionSpace] = {}
        """Player -> the action space of its session, which lists what its role at the start can do."""
        self._seen: dict[int, tuple[tuple[object, ...], Observation]] = {}
        """Player -> its last observation, after all that it depends on."""
        super().__init__(Context(seed))

    # --- the rules -----------------------------------------------------------------------------

    @override
    def begin(self) -> None:
        self.game = self.options.begin(self.seed + self.episode)
        self._given: Mapping[int, Choice] = dict(self.options.given)
        """Forced choices in the first round of a game with a history."""
        self._places = [Place(i) for i in range(len(self.seats))]

    @override
    def to_move(self) -> Sequence[str]:
        return tuple(self.seats[player] for player in self.game.waiting if player not in self._given)

    @override
    def legal(self, seat: str) -> Sequence[ActionAvailability]:
        return self.see(seat).available_actions or ()

    @override
    def refusal(self, seat: str, action: Action) -> str:
        return self.game.refusal(self.number(seat), choice_of(action, self.names))

    @override
    def default_action(self, seat: str) -> Action:
        return Action("wait")

    @override
    def apply(self, moves: Mapping[str, Action]) -> None:
        forced = frozenset(map(self.number, self.forced()))
        for player in map(self.number, moves):
            self.knowledge(player)
            self._places[player].took_a_turn()
        before, votes = len(self.game.log), dict(self.game.votes)
        chosen = {self.number(seat): choice_of(action, self.names) for seat, action in moves.items()}
        given, self._given = self._given, {}
        self.game.carry_out({**given, **chosen}, forced)
        for player, names in achievements(self.game, self.game.log[before:], votes).items():
            for name in names:
                self._places[player].earned.setdefault(name, False)

    @override
    def see(self, seat: str) -> Observation:
        player = self.number(seat)
        self.knowledge(player)
        game, place, described = self.game, self._places[player], self._described.get(player)
        # A turn is seen in the result of the one before, in the offers and by itself, and its text takes time.
        now = (game, game.round, len(game.log), place, place.turns, place.told, place.calls, described)
        if (last := self._seen.get(player)) is None or last[0] != now:
            last = self._seen[player] = now, observed(self.options, game, place, described=described)
        return last[1]

    @override
    def observation(self, seat: str) -> Observation:
        return self.see(seat)

    @override
    def returns(self) -> Mapping[str, float]:
        winners = () if self.game.ending is None else self.game.ending.winners
        return {seat: float(player in winners) for player, seat in enumerate(self.seats)}

    @override
    def message(self, seat: str, pay: float) -> str:
        ending = self.game.ending
        if ending is None:
            return "It is your turn again."
        return f"The game is over: you have {'won' if self.number(seat) in ending.winners else 'lost'}. {ending.reason}"

    @override
    def actions_of(self, seat: str) -> ActionSpace:
        player = self.number(seat)
        if player not in self._spaces:
            role = self.game.state.players[player].role
            self._spaces[player] = action_space(self.names, list(ROLES), self.options.rules, role)
        return self._spaces[player]

    @override
    def achieved(self, seat: str) -> Sequence[str]:
        earned = self._places[self.number(seat)].earned
        found = sorted(name for name, told in earned.items() if not told and (self.game.over or name in TELLS_NOTHING))
        earned |= dict.fromkeys(found, True)
        return tuple(found)

    @override
    def look_up(self, seat: str, action: Action) -> tuple[bool, str]:
        player = self.number(seat)
        self.knowledge(player)
        return use(self.options, self.game, self._places[player], action)

    @override
    def vary_secret(self, seat: str, rng: Random) -> bool:
        player, text = self.number(seat), f"I trust nobody but {rng.choice(self.names)}."
        written = [self.game.write(player, what, text) == "" for what in WRITINGS]
        return any(written)

    # --- for the seats -------------------------------------------------------------------------

    @override
    def seat(self, agent_id: str) -> RoundSeat:
        face = super().seat(agent_id)
        player = self.number(self._taken[agent_id])
        self._described.pop(player, None)
        self._spaces.pop(player, None)
        return face

    @override
    def describe(self, seat: str) -> str:
        player = self.number(seat)
        role = self.game.state.players[player].role
        # An agent gets this once, at the start of its session; its turns describe a role that it gets later.
        self._described.setdefault(player, role.name)
        sheet = role_sheet(role, self.game.rules)
        return f"{self.game_description}\n\nYou are {self.names[player]}, the {role.name}.\n{sheet}"

    @override
    def picture(self, seat: str) -> View:
        return town_view(self.knowledge(self.number(seat)), self.names, seats=self.seats, speaker=self._speaker)

    def render(self) -> View:
        """Return the public view, or the view with all secrets if the option `watch` is "all"."""
        if self.options.watch == "all" or self.game.over:
            whole = Knowledge(None).take_all(as_seen(e) for e in self.game.log)
            return town_view(whole, self.names, self.game, seats=self.seats, speaker=self._speaker)
        everyone = self.game.state.everyone
        public = Knowledge(None).take_all(as_seen(e) for e in self.game.log if e.known_by == everyone)
        return town_view(public, self.names, seats=self.seats, speaker=self._speaker)

    @property
    def _speaker(self) -> int | None:
        """The player who has the floor; who is asked or bids for it at other times is told to nobody."""
        by_turns = self.game.state.phase in _ON_THE_FLOOR and self.game.rules.floor != "bids"
        return self.game.waiting[0] if by_turns and self.game.waiting else None

    def number(self, seat: str) -> int:
        """Return the player of a seat."""
        return self.seats.index(seat)

    def knowledge(self, player: int) -> Knowledge:
        """Return the player's knowledge."""
        return self._places[player].take_in(self.game.log)

    # --- snapshots -----------------------------------------------------------------------------

    @override
    def dump(self) -> JsonValue:
        return {
            "game": self.game.to_json(),
            "described": sorted(self._described.items()),
            "places": [place.to_json() for place in self._places],
            "given": rows_of_choices(self._given),
        }

    @override
    def load(self, data: JsonValue) -> None:
        game = Game.from_json(data["game"])
        if game.rules != self.options.rules:
            raise SnapshotError(
                f"The snapshot has the rule set {game.rules.name!r}, version {game.rules.version}, but this town has "
                f"{self.options.rules.name!r}, version {self.options.rules.version}; use the same rule set."
            )
        if game.setup.slots != self.options.setup.slots:
            raise SnapshotError("The snapshot has another role list than this town.")
        kept = zip(range(len(self.seats)), data["places"], strict=True)
        places = [Place.from_json(player, place) for player, place in kept]
        given = choices_in(data["given"])
        self._described = {int(player): str(role) for player, role in data["described"]}
        self.game, self._places, self._given = game, places, given


def create(context: Context) -> Town:
    """Return a town with the context's options; see `TownOptions`.

    Raises:
        ConfigError: an option is invalid.
    """
    return Town(TownOptions.read(context.config), context.seed)
