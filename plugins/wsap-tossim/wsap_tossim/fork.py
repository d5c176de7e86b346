"""Fork a game at one of its rounds: other players, or other decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wsap_core.errors import UsageError
from wsap_core.untrusted import sanitize
from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.game import WRITINGS, Entry, Game
from wsap_tossim.forced_choices import ForcedChoice, decided
from wsap_tossim.history import History
from wsap_tossim.knowledge import as_seen
from wsap_tossim.players.decider import Decider, RandomDecider, lots
from wsap_tossim.players.match import play_match
from wsap_tossim.players.scripted import ScriptedDecider
from wsap_tossim.replay.record import Record, until

__all__ = ["BY_HAND", "DECIDERS", "Round", "Start", "forked", "parted", "rounds_of"]

DECIDERS: Mapping[str, type[ScriptedDecider] | type[RandomDecider]] = {
    "scripted": ScriptedDecider,
    "random": RandomDecider,
}
"""Players that can continue a game, by name."""

BY_HAND = "(Set by hand, when the game was forked.)"
"""Thought recorded with a forced choice."""


class Round(NamedTuple):
    """One round of a game."""

    number: int
    day: int
    phase: str
    asked: tuple[int, ...]
    """Players, by number."""
    chosen: tuple[Entry, ...] = ()
    """Choices in the order of `asked`."""


def rounds_of(game: Game) -> Iterator[Round]:
    """Yield the rounds of a game."""
    chosen: dict[int, list[Entry]] = {}
    for entry in game.record:
        if entry.verb not in WRITINGS:
            chosen.setdefault(entry.round, []).append(entry)
    for number, start in enumerate(game.starts):
        before = as_seen(game.log[max(0, start - 1)])
        entries = tuple(chosen.get(number, ()))
        yield Round(number, before.day, before.phase, tuple(e.player for e in entries), entries)


@dataclass(frozen=True)
class Start:
    """The point at which a fork departs from its game."""

    record: Record
    """The game up to the fork, with the thoughts and beliefs until then."""
    at: int
    """The round of the fork."""
    given: Mapping[int, Choice] = field(default_factory=dict)
    """Forced choices in the next round; see `History.given`."""

    def history(self) -> History:
        """Return the history that a run continues.

        Raises:
            UsageError: the game is over at the fork.
            ConfigError: a run can't have the players' names.
        """
        record = self.record
        if record.game.over:
            raise UsageError(f"The game is over at round {self.at}, so nobody can continue it; fork it earlier.")
        data = record.to_json()
        aside = {name: data[name] for name in ("minds", "thoughts", "beliefs", "found_out") if name in data}
        return History(record.game, tuple(record.names), self.given, aside | {"at": self.at})


def parted(record: Record, at: int, forced_choices: Sequence[ForcedChoice] = (), *, ask_others: bool = False) -> Start:
    """Return the fork of a game at round `at`, with forced choices in that round.

    If there are forced choices, the other players keep their recorded decisions and papers of that round, unless
    `ask_others` is true.

    Raises:
        UsageError: the game has fewer rounds, or a forced choice is illegal.
    """
    game = record.game.fork(at)
    played_by = record.played_by or ("",) * len(record.names)
    given: dict[int, Choice] = {}
    thoughts = [row for row in record.thoughts if row[0] < at]
    if forced_choices:
        settled = {choice.player for choice in forced_choices if choice.is_choice}
        others = [] if ask_others else [e for e in record.game.record if e.round == at and e.player not in settled]
        decisions = {e.player: e for e in others if e.verb not in WRITINGS}
        writers = {choice.player for choice in forced_choices}
        for entry in others:
            if entry.verb in WRITINGS and entry.player not in writers:
                game.write(entry.player, entry.verb, entry.text)
        given = decided(game, forced_choices, record.names)
        given |= {n: Choice(Verb(e.verb), e.targets, e.text) for n, e in decisions.items()}
        thoughts += [row for row in record.thoughts if row[0] == at and row[1] in decisions]
        thoughts += [(at, player, BY_HAND) for player in sorted(settled)]
        if given and set(given) >= set(game.waiting):
            forced = frozenset(n for n, e in decisions.items() if e.forced)
            game.carry_out({n: given[n] for n in game.waiting}, forced)
            given = {}
    beliefs = [row for row in record.beliefs if row[0] < game.state.day]
    found_out = tuple(n for n in record.found_out if any(row[1] == n for row in beliefs))
    return Start(Record(game, record.names, played_by, tuple(thoughts), tuple(beliefs), found_out), at, given)


def forked(
    record: Record,
    at: int,
    deciders: Mapping[int, str],
    *,
    seed: int = 0,
    otherwise: str = "scripted",
    forced_choices: Sequence[ForcedChoice] = (),
    ask_others: bool = False,
) -> Record:
    """Return a game forked at a round and played to its end.

    Args:
        record: the game.
        at: number of rounds to keep; for round `at` see `parted`.
        deciders: player -> a name in `DECIDERS`.
        seed: of the deciders; the game's own random draws keep its seed.
        otherwise: decider of the other players.
        forced_choices: in round `at`.
        ask_others: whether to ask the other players again in that round.

    Raises:
        UsageError: the game has fewer rounds, there is no such decider, or a forced choice is illegal.
    """
    count = len(record.names)
    names = [deciders.get(player, otherwise) for player in range(count)]
    players = [_decider(name, player, seed, record.names) for player, name in enumerate(names)]
    start = parted(record, at, forced_choices, ask_others=ask_others)
    before = start.record
    played = play_match(before.game, players, given=start.given)
    return replace(
        before,
        played_by=until(before.played_by, at, names),
        thoughts=(*before.thoughts, *played.thoughts),
        beliefs=(*before.beliefs, *played.beliefs),
    )


def _decider(name: str, player: int, seed: int, names: Sequence[str]) -> Decider:
    if name not in DECIDERS:
        raise UsageError(f"There is no player {sanitize(name, 40)!r} to continue; there are: {', '.join(DECIDERS)}.")
    return DECIDERS[name](player, lots(seed, player), names)
