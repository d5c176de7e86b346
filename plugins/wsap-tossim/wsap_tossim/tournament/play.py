"""Games without models, played on the engine in this process or in worker processes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from wsap_core.seams.agent import Usage
from wsap_tossim.engine.game import Game
from wsap_tossim.options import TownOptions
from wsap_tossim.players.decider import Decider, RandomDecider
from wsap_tossim.players.match import play_match
from wsap_tossim.players.scripted import ScriptedDecider
from wsap_tossim.replay.record import Record
from wsap_tossim.tournament.ledger import Line
from wsap_tossim.tournament.measures import measure
from wsap_tossim.tournament.plan import Fixture, Settings, fixture
from wsap_tossim.tournament.spending import packed

__all__ = ["line_of", "play_all", "play_one"]

Beliefs = Sequence[tuple[int, int, Mapping[int, float]]]
_DECIDERS: Mapping[str, Callable[[int, random.Random, Sequence[str]], Decider]] = {
    "scripted": ScriptedDecider,
    "random": RandomDecider,
}


def play_one(settings: Settings, number: int) -> Line:
    """Play a game without models, and return its line."""
    drawn = fixture(settings, number)
    options = TownOptions.read(settings.options)
    game = Game(options.setup, options.rules, drawn.seed)
    deciders: list[Decider] = []
    for seat, entrant in enumerate(drawn.seats):
        maker = _DECIDERS[settings.entrants[entrant].kind]
        deciders.append(maker(seat, random.Random(drawn.decider_seeds[seat]), drawn.names))  # play, not secrets
    played = play_match(game, deciders)
    refused = [0] * len(deciders)
    for _, player, _ in played.refused:
        refused[player] += 1
    return line_of(settings, drawn, game, played.beliefs, refused)


def line_of(
    settings: Settings,
    drawn: Fixture,
    game: Game,
    beliefs: Beliefs = (),
    refused: Sequence[int] = (),
    *,
    run: str | None = None,
    usage: Sequence[Usage | None] | None = None,
    asked: Sequence[Usage | None] | None = None,
) -> Line:
    """Return the line to store for a finished game.

    Args:
        settings: of the tournament.
        drawn: the planned game.
        game: the finished game.
        beliefs: the known beliefs of the players, by day.
        refused: number of illegal choices of each seat.
        run: id of the recorded run, if any.
        usage: each seat's model usage for playing; None without a model.
        asked: the same for beliefs.
    """
    ending = game.ending
    assert ending is not None, "the game is over"
    labels = [settings.entrants[entrant].label for entrant in drawn.seats]
    return {
        "game": drawn.number,
        "block": drawn.block,
        "seed": drawn.seed,
        "seats": list(drawn.seats),
        "entrants": labels,
        "names": list(drawn.names),
        "roles": [p.first_role.name for p in game.state.players],
        "final": [p.role.name for p in game.state.players],
        "side": ending.side,
        "winners": list(ending.winners),
        "reason": ending.reason,
        "days": game.state.day,
        "rounds": game.round,
        "refused": list(refused) or [0] * len(labels),
        "measures": measure(game.log, drawn.names, beliefs),
        "usage": None if usage is None else [None if one is None else packed(one) for one in usage],
        "asked": None if asked is None else [None if one is None else packed(one) for one in asked],
        "run": run,
        "record": Record(game, drawn.names, labels, (), beliefs).to_json(),
    }


def play_all(settings: Settings, numbers: Iterable[int], jobs: int) -> Iterator[Line]:
    """Play games without models, and yield their lines in the order of the numbers.

    With more than one job, worker processes play them, which end with this process, however it ends.
    """
    if jobs == 1:
        for number in numbers:
            yield play_one(settings, number)
        return
    import multiprocessing  # deferred for weight

    context = multiprocessing.get_context("spawn")
    pool = context.Pool(jobs, _begin, (settings,))
    try:
        yield from pool.imap(_play, numbers)
        pool.close()
    finally:
        pool.terminate()
        pool.join()


# --- in a worker process ----------------------------------------------------------------------

_given: dict[str, Any] = {}
"""The settings of this worker's only tournament."""


def _begin(settings: Settings) -> None:
    """Let a worker process ignore Ctrl-C and end with its parent."""
    import multiprocessing
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _given["settings"] = settings
    parent = multiprocessing.parent_process()
    if parent is not None:
        import threading

        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    import os
    from multiprocessing.connection import wait

    wait([sentinel])
    os._exit(1)


def _play(number: int) -> Line:
    return play_one(_given["settings"], number)
