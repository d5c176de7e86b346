"""Turn a recorded run of `wsap play tossim` into a game's record by replaying every seat's choices in order.

The input is the export of the run (`wsap export RUN`): a line that describes it, then one for each event. Its
`chosen` events are in the order in which the world received the choices.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from wsap_core.errors import ConfigError, WireError
from wsap_core.protocol import Action
from wsap_core.untrusted import error_line
from wsap_core.worlds.legality import check_action, index_actions
from wsap_tossim.engine.data.model import WAIT, Choice
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.options import TownOptions, seat_name
from wsap_tossim.replay.belief_replay import replay_beliefs, seeds_of
from wsap_tossim.replay.record import FORMAT, Record, record_from_json, until
from wsap_tossim.replay.story import Thought
from wsap_tossim.tool_use import barred, write_down
from wsap_tossim.verbs import TOOLS, action_space, choice_of

__all__ = [
    "RUN_FORMAT", "head_of", "nothing_played", "played_in_run", "record_of_run", "rows_of_export", "telling_damage",
]  # fmt: skip

RUN_FORMAT = "wsap-run"
LEAVES = "jack_out"
"""The action by which a player leaves; the town never refuses it."""


def rows_of_export(data: bytes, source: str) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of an export as data.

    Raises:
        WireError: a line is not a JSON object.
    """
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise WireError(f"{source!r} is damaged: line {number} is not JSON.") from error
        if not isinstance(row, dict):
            raise WireError(f"{source!r} is damaged: line {number} is not a JSON object.")
        yield row


class Seats:
    """The seats of a run and their players.

    Seats with other names, such as agents of the nexus, take the first free players.
    """

    def __init__(self, options: TownOptions, names: Iterable[str]) -> None:
        self._seats = [seat_name(n) for n in range(len(options.names))]
        self._taken: dict[str, int] = {}
        for name in names:
            self.player(name)

    def player(self, seat: str) -> int:
        """Return the player in a seat, by number.

        Raises:
            ValueError: there is no such seat.
        """
        if seat not in self._taken:
            free = [n for n in range(len(self._seats)) if n not in self._taken.values()]
            if seat not in self._seats and not free:
                raise ValueError(f"there is no seat for {seat[:20]!r}")
            self._taken[seat] = self._seats.index(seat) if seat in self._seats else free[0]
        return self._taken[seat]


@dataclass(frozen=True)
class RunHead:
    """The first line of an exported run."""

    run: str | None
    options: TownOptions
    config: Mapping[str, Any]

    @cached_property
    def seats(self) -> Seats:
        """The seats and their players."""
        return Seats(self.options, [str(seat["name"]) for seat in self.config["seats"]])

    @cached_property
    def seeds(self) -> dict[int, int]:
        """The seeds of scripted players."""
        return seeds_of(self.config, {str(s["name"]): self.seats.player(str(s["name"])) for s in self.config["seats"]})

    @cached_property
    def styles(self) -> tuple[str, ...]:
        """The reply style of each player's model, `json` or `tags`; empty without a model."""
        styles = [""] * len(self.options.names)
        for seat in self.config["seats"]:
            given = seat.get("options") or {}
            if "model" in given:
                styles[self.seats.player(str(seat["name"]))] = str(given.get("style", "json"))
        return tuple(styles)

    @cached_property
    def played_by(self) -> tuple[str, ...]:
        """Who plays each seat: a model's address or an agent; empty for a seat that is not in the run."""
        played_by = [""] * len(self.options.names)
        for seat in self.config["seats"]:
            played_by[self.seats.player(str(seat["name"]))] = str(
                (seat.get("options") or {}).get("model") or seat["agent"]
            )
        return tuple(played_by)


def head_of(rows: Iterator[Mapping[str, Any]], source: str) -> RunHead:
    """Read the first line of an export.

    Raises:
        WireError: it is not a readable run of this game.
        ConfigError: its options are invalid.
    """
    head = next(rows, {})
    if head.get("format") != RUN_FORMAT or head.get("format_version") != 1:
        raise WireError(f"{source!r} is not an exported run that this package can read.")
    if head.get("game") != "tossim":
        raise WireError(f"{source!r} is a run of {str(head.get('game'))[:40]!r}, not of tossim.")
    config = head["config"]
    return RunHead(head.get("run"), TownOptions.read(config["options"]), config)


@contextlib.contextmanager
def telling_damage(source: str) -> Iterator[None]:
    """Raise any error while an export is read as a WireError that calls the export damaged."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise WireError(f"{source!r} is damaged: {error_line(error, 100, kind=True)}.") from error
    except ConfigError as error:
        raise WireError(f"{source!r} can't be replayed: {error}") from error


def nothing_played(source: str) -> WireError:
    """Return the error for a run without a game."""
    return WireError(f"{source!r} has no game: nothing was played yet.")


def record_of_run(rows: Iterable[Mapping[str, Any]], source: str) -> Record:
    """Return the last game of a run; see `played_in_run`."""
    return played_in_run(rows, source)[1]


def played_in_run(rows: Iterable[Mapping[str, Any]], source: str) -> tuple[RunHead, Record]:
    """Return the head of a run and its last game, finished or not; `source` is its origin, for messages.

    The beliefs of scripted players are recomputed, since a run does not contain them.

    Raises:
        WireError: it is not a run of this game, or is damaged.
    """
    with telling_damage(source):
        return _read(iter(rows), source)


def _read(rows: Iterator[Mapping[str, Any]], source: str) -> tuple[RunHead, Record]:
    head = head_of(rows, source)
    again: _Again | None = None
    for row in rows:
        kind = row.get("kind")
        if kind == "episode":
            again = _Again(head.options, int(row["body"]["seed"]))
        elif kind == "chosen" and again is not None:
            again.choose(head.seats.player(str(row["seat"])), row["body"])
        elif kind == "left" and again is not None:
            again.leave(head.seats.player(str(row["seat"])))
    if again is None:
        raise nothing_played(source)
    before = _before(head, again)
    options = head.options
    beliefs = replay_beliefs(options.begin(again.seed), again.game, options.names, head.seeds, frozenset(options.given))
    found_out = {player for _, player, _ in beliefs} | set(before.found_out)
    first = beliefs[0].day if beliefs else again.game.state.day + 1
    return head, replace(
        before,
        thoughts=(*before.thoughts, *again.thoughts),
        beliefs=(*(b for b in before.beliefs if b[0] < first), *beliefs),
        found_out=tuple(sorted(found_out)),
    )


def _before(head: RunHead, again: _Again) -> Record:
    """Return the record of the game before the run, if it is a fork."""
    names, history = head.options.names, head.options.history
    if history is None:
        return Record(again.game, names, head.played_by)
    # untrusted, like any record from outside
    kept = {
        name: history.aside[name] for name in ("minds", "thoughts", "beliefs", "found_out") if name in history.aside
    }
    data = {"format": FORMAT, "version": 1, **kept, "game": history.game.to_json(), "names": list(names)}
    before = record_from_json(data, "The past")
    played_by = before.played_by or ("",) * len(names)
    return replace(before, game=again.game, played_by=until(played_by, int(history.aside["at"]), head.played_by))


class _Again:
    """Replays a game as `wsap_tossim.world` played it."""

    def __init__(self, options: TownOptions, seed: int) -> None:
        self.options = options
        self.seed = seed
        self.game = options.begin(seed)
        self.thoughts: list[Thought] = []
        self._declared = index_actions(action_space(options.names, list(ROLES), options.rules))
        self._chosen: dict[int, Choice] = dict(options.given)
        self._calls: dict[int, int] = {}
        self._absent: set[int] = set()
        self._forced: set[int] = set()

    def choose(self, player: int, body: Mapping[str, Any]) -> None:
        """Handle a choice as the world did, refusals included."""
        action = Action(str(body["action"]["name"]), body["action"]["parameters"], body.get("reasoning"))
        game = self.game
        if action.reasoning and not game.over:
            self.thoughts.append(Thought(game.round, player, action.reasoning))
        if action.name == LEAVES:
            self.leave(player)
            return
        action, refused = check_action(action, self._declared)
        if refused or player not in game.waiting or player in self._chosen:
            return
        if action.name in TOOLS:
            self._use(player, action)
            return
        choice = choice_of(action, self.options.names)
        if not game.refusal(player, choice):
            self._chosen[player] = choice
            if (body.get("decision") or {}).get("forced"):
                self._forced.add(player)
            self._go_on()

    def leave(self, player: int) -> None:
        """Let a player wait from now on."""
        self._absent.add(player)
        self._go_on()

    def _use(self, player: int, action: Action) -> None:
        one, calls = self.game.state.players[player], self._calls.get(player, 0)
        if action.name not in barred(self.options, calls, alive=one.alive, day=self.game.state.day):
            self._calls[player] = calls + 1
            write_down(self.game, player, action)

    def _go_on(self) -> None:
        """Resolve rounds while everybody asked has chosen or left."""
        game = self.game
        while not game.over and all(p in self._chosen or p in self._absent for p in game.waiting):
            if all(p in self._absent for p in range(len(self.options.names))):
                return
            for player in game.waiting:
                self._calls.pop(player, None)
            chosen, self._chosen = self._chosen, {}
            forced, self._forced = frozenset(self._forced), set()
            game.carry_out({p: chosen.get(p, WAIT) for p in game.waiting}, forced)
