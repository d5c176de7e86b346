"""The town as a world of several seats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation, View
from wsap_core.seams.context import Context
from wsap_core.worlds.barrier import Barrier
from wsap_core.worlds.legality import check_action, index_actions
from wsap_tossim.achievements import TELLS_NOTHING, achievements
from wsap_tossim.description import description_of, role_sheet
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.model import Choice
from wsap_tossim.engine.roles import ROLES
from wsap_tossim.history import choices_in, rows_of_choices
from wsap_tossim.knowledge import Knowledge, as_seen
from wsap_tossim.observation import TownObservation
from wsap_tossim.observe import observed
from wsap_tossim.options import TownOptions, seat_name
from wsap_tossim.pictures import town_view
from wsap_tossim.place import Place
from wsap_tossim.tool_use import use
from wsap_tossim.verbs import TOOLS, action_space, choice_of

__all__ = ["Town", "TownSeat", "create"]

WAIT = Action("wait")


class Town:
    """One town: a game of hidden roles for 5 to 15 seats.

    A seat's `act` returns when the seat is asked again, or when the game is over, with everything that
    it came to know in between; the dead are asked only where they can still do something. Tools are
    actions that return at once and take no turn.

    Args:
        options: mode, rules and names.
        seed: of the first game.
    """

    def __init__(self, options: TownOptions, seed: int) -> None:
        self.options = options
        self.names = options.names
        self.seats = tuple(seat_name(i) for i in range(len(options.setup.slots)))
        self._space = action_space(self.names, list(ROLES), options.rules)
        self._declared = index_actions(self._space)
        self._taken: dict[str, str] = {}
        self._seed = seed
        self._described: dict[int, str] = {}
        """Player -> the role that whoever sits there was told of at first."""
        self.game: Game
        self._given: dict[int, Choice] = {}
        """Forced choices in the first round of a game with a history."""
        self._places: list[Place] = []
        self._barrier = Barrier(
            self.seats, self._resolve, lambda seat: WAIT, observe=self.observation, expects=self._expected
        )
        self.reset(seed)

    # --- the face of the whole world -----------------------------------------------------------

    @property
    def game_description(self) -> str:
        """The rules in short, the same for all."""
        return description_of(self.options)

    @property
    def action_space(self) -> ActionSpace:
        """Every verb of every role, and the tools: the same for all, so that it tells nobody anything."""
        return self._space

    def observe(self) -> Observation:
        """Refuse: there are several seats.

        Raises:
            UsageError: always; ask a seat.
        """
        raise UsageError("The town has several seats; observe through seat('player-1') and so on.")

    def act(self, action: Action) -> ActionResult:
        """Refuse: there are several seats.

        Raises:
            UsageError: always; ask a seat.
        """
        raise UsageError("The town has several seats; act through seat('player-1') and so on.")

    def reset(self, seed: int | None = None) -> Observation:
        """Begin another game, from the seed or from the next of the world's own; return what player 1 sees."""
        self._seed = self._seed + 1 if seed is None else seed
        self.game = self.options.begin(self._seed)
        self._given = dict(self.options.given)
        self._places = [Place(i) for i in range(len(self.seats))]
        self._barrier.restart(round_number=self.game.round)
        self._ask()
        return self.observation(self.seats[0])

    def seat(self, agent_id: str) -> TownSeat:
        """Return the adapter of one player; unknown names take the first free seat.

        Raises:
            UsageError: all seats are taken by others.
        """
        place = agent_id if agent_id in self.seats else self._taken.get(agent_id)
        if place is None:
            taken = set(self._taken.values())
            place = next((s for s in self.seats if s not in taken), None)
        if place is None:
            raise UsageError(f"All {len(self.seats)} seats of the town are taken.")
        self._taken[agent_id] = place
        return TownSeat(self, place)

    def leave(self, agent_id: str) -> None:
        """Let a player leave: the seat says and does nothing from now on."""
        seat = agent_id if agent_id in self.seats else self._taken.get(agent_id)
        if seat is not None:
            self._barrier.leave(seat, replaced=True)

    def expire(self) -> tuple[str, ...]:
        """End the time for this round: whoever has not acted waits. Return their seats."""
        return self._barrier.expire()

    def render(self) -> View:
        """Return the town as all know it, or with its secrets where the option `watch` says so."""
        if self.options.watch == "all" or self.game.over:
            return town_view(Knowledge(None).take_all(as_seen(e) for e in self.game.log), self.names, self.game)
        everyone = self.game.state.everyone
        public = Knowledge(None).take_all(as_seen(e) for e in self.game.log if e.known_by == everyone)
        return town_view(public, self.names)

    # --- for the seats -------------------------------------------------------------------------

    def number(self, seat: str) -> int:
        """Return the player of a seat."""
        return self.seats.index(seat)

    def knowledge(self, player: int) -> Knowledge:
        """Return the player's knowledge."""
        return self._places[player].take_in(self.game.log)

    def describe(self, seat: str, *, first: bool) -> str:
        """Return what whoever sits there is told of the game and its role.

        Args:
            seat: whose.
            first: whether it is told for the first time: an agent is told once, when its session begins. Where its
                role is another one later, its turns say what that one can do.
        """
        player = self.number(seat)
        role = self.game.state.players[player].role
        if first:
            self._described[player] = role.name
        sheet = role_sheet(role, self.game.rules.to_json())
        return f"{self.game_description}\n\nYou are {self.names[player]}, the {role.name}.\n{sheet}"

    def observation(self, seat: str) -> TownObservation:
        """Return what a player is shown now."""
        player = self.number(seat)
        self.knowledge(player)
        return observed(self.options, self.game, self._places[player], described=self._described.get(player))

    def picture(self, seat: str) -> View:
        """Return the town as one player knows it."""
        return town_view(self.knowledge(self.number(seat)), self.names)

    async def turn(self, seat: str) -> int:
        """Wait until a seat is asked; return the round."""
        return await self._barrier.turn(seat)

    async def play(self, seat: str, action: Action, round_seen: int) -> ActionResult:
        """Take a seat's action, and return its result when the seat is asked again or the game is over."""
        action, reason = check_action(action, self._declared)
        player = self.number(seat)
        if not reason and not self.game.over and action.name not in TOOLS and seat in self._barrier.expected:
            reason = self.game.refusal(player, choice_of(action, self.names))
        if reason:
            return ActionResult(False, reason, done=self.game.over, observation=self.observation(seat))
        if action.name in TOOLS:
            return self._use(seat, action)
        return await self._barrier.act(seat, action, round_seen=round_seen)

    def _use(self, seat: str, action: Action) -> ActionResult:
        player = self.number(seat)
        self.knowledge(player)
        if player in self.game.waiting and seat in self._barrier.expected:
            success, message = use(self.options, self.game, self._places[player], action)
        else:
            success, message = False, "The game is over." if self.game.over else "It is not your turn."
        return ActionResult(success, message, done=self.game.over, observation=self.observation(seat))

    def _expected(self) -> Sequence[str]:
        return tuple(self.seats[p] for p in self.game.waiting if p not in self._given)

    def _resolve(self, actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        forced = frozenset(
            self.number(seat) for number, seat, _ in self._barrier.forced if number == self._barrier.round
        )
        for seat in actions:
            player = self.number(seat)
            self.knowledge(player)
            self._places[player].took_a_turn()
        before, votes = len(self.game.log), dict(self.game.votes)
        given, self._given = self._given, {}
        chosen = {self.number(seat): choice_of(action, self.names) for seat, action in actions.items()}
        self.game.carry_out(given | chosen, forced)
        for player, names in achievements(self.game, self.game.log[before:], votes).items():
            for name in names:
                self._places[player].earned.setdefault(name, False)
        self._ask()
        named = range(len(self.seats)) if self.game.over else self.game.waiting
        return {self.seats[player]: self._result(player) for player in named}

    def _ask(self) -> None:
        """Note for those who are asked now in which round that is."""
        for player in self.game.waiting:
            place = self._places[player]
            place.rounds[place.turns] = self.game.round

    def round_of(self, seat: str, turn: int) -> int | None:
        """Return the round in which a seat was asked for a turn of its own; None if it was not asked yet."""
        return self._places[self.number(seat)].rounds.get(turn)

    def _result(self, player: int) -> ActionResult:
        place, over = self._places[player], self.game.over
        earned = tuple(sorted(n for n, told in place.earned.items() if not told and (over or n in TELLS_NOTHING)))
        place.earned |= dict.fromkeys(earned, True)
        seen = self.observation(self.seats[player])
        ending = self.game.ending
        if ending is None:
            return ActionResult(True, "It is your turn again.", achievements=earned, observation=seen)
        won = player in ending.winners
        message = f"The game is over: you have {'won' if won else 'lost'}. {ending.reason}"
        return ActionResult(True, message, float(won), earned, True, seen)

    # --- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the game's record, and what each seat has been told and has looked up."""
        state = {
            "game": self.game.to_json(),
            "seed": self._seed,
            "described": sorted(self._described.items()),
            "places": [place.to_json() for place in self._places],
            "given": rows_of_choices(self._given),
        }
        return json.dumps(state, sort_keys=True, separators=(",", ":")).encode()

    def restore(self, data: bytes) -> None:
        """Restore a snapshot.

        Raises:
            SnapshotError: it is damaged, or of a game with other rules, roles or players.
        """
        try:
            state: dict[str, Any] = json.loads(data)
            game = Game.from_json(state["game"])
            # Whether hunters hear is as it was when the game began: under an older version they did not.
            ours = replace(self.options.rules, hunter_hears_vampires=game.rules.hunter_hears_vampires)
            if game.rules != ours:
                raise SnapshotError(
                    f"The snapshot is of the rule set {game.rules.name!r}, version {game.rules.version}, and this town "
                    f"plays by {self.options.rules.name!r}, version {self.options.rules.version}; go on under the same."
                )
            if game.setup.slots != self.options.setup.slots:
                raise SnapshotError("The snapshot is of another role list than this town's.")
            kept = zip(range(len(self.seats)), state["places"], strict=True)
            places = [Place.from_json(player, place) for player, place in kept]
            seed = int(state["seed"])
            given = choices_in(state.get("given", ()))
            described = {int(player): str(role) for player, role in state.get("described", ())}
        except SnapshotError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SnapshotError(f"The town's snapshot is damaged: {error}.") from error
        self.game, self._places, self._seed, self._described = game, places, seed, described
        self._given = given
        self._barrier.restart(round_number=game.round)
        self._ask()


class TownSeat:
    """The town as seen by one player."""

    def __init__(self, town: Town, seat: str) -> None:
        self._town = town
        self._seat = seat
        self._round = 0
        self._described = False

    @property
    def game_description(self) -> str:
        """The rules, who this player is, and what its role can do."""
        first, self._described = not self._described, True
        return self._town.describe(self._seat, first=first)

    @property
    def action_space(self) -> ActionSpace:
        """Every verb and tool of the game."""
        return self._town.action_space

    async def observe(self) -> Observation:
        """Return what the player is shown when it is asked next."""
        self._round = await self._town.turn(self._seat)
        return self._town.observation(self._seat)

    async def act(self, action: Action) -> ActionResult:
        """Choose, and return the result when the player is asked again or the game is over; tools return at once."""
        result = await self._town.play(self._seat, action, self._round)
        self._round = self._town.round_of(self._seat, result.observation.step) or self._round
        return result

    def reset(self) -> Observation:
        """Refuse: one player can't reset a game for all.

        Raises:
            UsageError: always.
        """
        raise UsageError("One seat can't reset a shared game; reset the world.")

    def default_action(self) -> Action:
        """Return the action `wait`."""
        return WAIT

    def render(self) -> View:
        """Return the town as this player knows it."""
        return self._town.picture(self._seat)


def create(context: Context) -> Town:
    """Return a town, with the context's options; see `TownOptions`.

    Raises:
        ConfigError: an option can't be.
    """
    return Town(TownOptions.read(context.config), context.seed)
