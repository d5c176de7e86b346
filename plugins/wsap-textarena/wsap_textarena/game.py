"""A game of TextArena as a game for agents."""

from __future__ import annotations

import contextlib
import io
import math
import random
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionDef, ActionSpace, Observation, ParamDef
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context, derive_seed
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import error_line, single_line
from wsap_nexus.doors.foreign import LONGEST, TextObservation, drawn
from wsap_textarena.catalogue import made
from wsap_textarena.plugin import BY_FORFEIT, DEFAULT, FORFEITED, MOST_SEATS

# Any, in this module: TextArena's environments.

PLAY = "play"
"""The only action; its parameter `text` is what the player says to the game."""
_ORDER: tuple[int, ...] = (2, 1, *range(3, MOST_SEATS + 1))
"""Numbers of players, in the order in which they are tried."""
_ALONE = threading.RLock()


class Chance:
    """The state of the process's own random generators while one game uses them: TextArena's games have none of their
    own."""

    def __init__(self, seed: int) -> None:
        self._seed: int | None = seed
        self._states: tuple[Any, Any] = (None, None)

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Lend the generators to the game within the block, in which nothing is printed."""
        with _ALONE, contextlib.redirect_stdout(io.StringIO()):
            outer = _states()
            if self._seed is None:
                _set(self._states)
            else:
                random.seed(self._seed)
                if (numpy := sys.modules.get("numpy")) is not None:
                    numpy.random.seed(self._seed)
                self._seed = None
            try:
                yield
            finally:
                self._states = _states()
                _set(outer)


def _states() -> tuple[Any, Any]:
    numpy = sys.modules.get("numpy")
    return random.getstate(), None if numpy is None else numpy.random.get_state()


def _set(states: tuple[Any, Any]) -> None:
    random.setstate(states[0])
    if states[1] is not None:
        sys.modules["numpy"].random.set_state(states[1])


def players_of(options: Mapping[str, Any]) -> int | None:
    """Return the option `players`; UsageError if it is no number of players."""
    given = options.get("players")
    if given in (None, ""):
        return None
    text = str(given)
    if not text.isdecimal() or not 1 <= int(text) <= MOST_SEATS:
        raise UsageError(
            f"The option players is {single_line(text)[:40]!r}; it must be a number from 1 to {MOST_SEATS}."
        )
    return int(text)


@lru_cache(maxsize=128)
def seats_of(name: str, players: int | None) -> int:
    """Return how many players a game has: the given number, or 2, or the fewest; UsageError if it can't have them."""
    problem = ""
    for count in _ORDER if players is None else (players,):
        chance = Chance(0)
        with chance.lent():
            try:
                made(name).reset(num_players=count, seed=0)
            except UsageError:
                raise
            except Exception as error:
                problem = error_line(error, 200, kind=True)
                continue
        return count
    raise UsageError(f"{name} can't be played by {players or 'any number of'} players: {problem}")


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of one game; UsageError if it can't be played."""
    name = str(options.get("id", DEFAULT))
    count = seats_of(name, players_of(options))
    return replace(spec, title=name, seats=(count, count))


def create(context: Context) -> TextArenaGame:
    """Return a game.

    Raises:
        UsageError: there is no such game, it can't be played, or not by so many.
        MissingServiceError: TextArena is not installed.
    """
    name = str(context.config.get("id", DEFAULT))
    return TextArenaGame(name, seats_of(name, players_of(context.config)), context)


class TextArenaGame(RoundGame):
    """A game of TextArena. A snapshot has what was said, and restoring repeats it from the seed."""

    def __init__(self, name: str, players: int, context: Context | None = None) -> None:
        self._name = name
        self.seats = tuple(f"seat-{number + 1}" for number in range(players))
        text = ParamDef("text", "your move, as the game asks for it")
        self.action_space = ActionSpace((ActionDef(PLAY, "Say your move to the game", (text,)),))
        self.game_description = f"{name} of TextArena, for {players} player{'s' if players > 1 else ''}."
        super().__init__(context)

    # --- the rules --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start from the seed."""
        seed = derive_seed(self.seed, self.episode)
        self._chance = Chance(seed)
        self._said: list[str] = []
        self._heard: dict[str, list[str]] = {seat: [] for seat in self.seats}
        self._rewards: dict[str, float] = dict.fromkeys(self.seats, 0.0)
        self._facts: dict[int, Any] = {}
        self._over = False
        with self._chance.lent():
            self._env = made(self._name)
            self._env.reset(num_players=len(self.seats), seed=seed)
            self._listen()

    def to_move(self) -> Sequence[str]:
        """Return the seat whose turn it is."""
        return () if self._over else (self.seats[self._env.state.current_player_id],)

    def legal(self, seat: str) -> Sequence[str]:
        """Return the only action: what a game takes stands in its texts."""
        return [PLAY]

    def apply(self, moves: Mapping[str, Action]) -> None:
        """Pass on what the player says."""
        (action,) = moves.values()
        self._take(str(action.parameters["text"]))

    def see(self, seat: str) -> Observation:
        """Return what the game and the others have told a seat: the beginning, which has the rules, and the latest."""
        first, *rest = self._heard[seat] or [""]
        room = LONGEST - min(len(first), LONGEST // 2)
        latest = "\n".join(rest)
        if len(latest) > room:
            latest = "[...]\n" + latest[len(latest) - room + 6 :]
        return TextObservation(drawing=drawn(f"{first[: LONGEST // 2]}\n{latest}".strip()))

    def returns(self) -> Mapping[str, float]:
        """Return TextArena's rewards."""
        return self._rewards

    def achieved(self, seat: str) -> Sequence[str]:
        """Return who forfeited an episode, at its end."""
        lost = self._forfeiters() if self._over else []
        return (FORFEITED if seat in lost else BY_FORFEIT,) if lost else ()

    def message(self, seat: str, pay: float) -> str:
        """Return the message of a result, at the end with the game's reason."""
        said = super().message(seat, pay)
        if not self._over:
            return said
        why = single_line(self._fact(self.seats.index(seat), "reason") or "")[:300]
        if lost := self._forfeiters():
            said += f" Forfeited by moves that are not possible: {', '.join(lost)}."
        return f"{said} {why}".strip()

    def dump(self) -> JsonValue:
        """Return what was said."""
        return list(self._said)

    def load(self, data: JsonValue) -> None:
        """Repeat what was said."""
        if not isinstance(data, list) or not all(isinstance(each, str) for each in data):
            raise TypeError("what was said is no list of texts")
        self.begin()
        for each in data:
            if self._over:
                raise ValueError("something was said after the end")
            self._take(str(each))

    # --- parts ------------------------------------------------------------------------------------------

    def _take(self, text: str) -> None:
        self._said.append(text)
        with self._chance.lent():
            done, _ = self._env.step(action=text)
            self._listen()
            if done:
                rewards, facts = self._env.close()
                self._over, self._facts = True, dict(facts or {})
                self._rewards = {seat: _number((rewards or {}).get(i)) for i, seat in enumerate(self.seats)}

    def _listen(self) -> None:
        """Take down what each player was told, which TextArena hands out once."""
        state = self._env.state
        for number, told in state.observations.items():
            if 0 <= number < len(self.seats):
                for sender, text, _ in told:
                    known = isinstance(sender, int) and sender >= 0  # some games mix up what they hand over
                    name = state.role_mapping.get(sender, f"Player {sender}") if known else "GAME"
                    self._heard[self.seats[number]].append(f"[{name}] {text}")
                state.observations[number] = []

    def _fact(self, number: int, name: str) -> Any:
        facts = self._facts.get(number)
        return facts.get(name) if isinstance(facts, Mapping) else None

    def _forfeiters(self) -> list[str]:
        return [seat for number, seat in enumerate(self.seats) if self._fact(number, "invalid_move") is True]


def _number(reward: Any) -> float:
    """Return a reward; 0 for what is none, as some games put sentences there."""
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        return 0.0
    return float(reward)
