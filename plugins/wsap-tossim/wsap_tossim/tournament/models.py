"""Playing the games in which models take part: several at once, through the runtime's own service, recorded.

Each game is a run in the tournament's own database, `runs.db` beside the games. Which run a game is, is
written down before it begins, so that one that was cut off is gone on with and asks no model twice.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from wsap_core.errors import UsageError, WireError
from wsap_core.services import Player, Services, runtime_services
from wsap_tossim.options import seat_name
from wsap_tossim.replay.runs import RUN_FORMAT, record_of_run
from wsap_tossim.tournament.ledger import Line
from wsap_tossim.tournament.plan import Fixture, Settings, fixture
from wsap_tossim.tournament.play import line_of

__all__ = ["DATABASE", "play_with_models"]

DATABASE, BEGUN = "runs.db", "begun.jsonl"
_AGENTS = {"scripted": "tossim-player", "random": "tossim-random", "model": "llm"}


def play_with_models(
    folder: Path, settings: Settings, numbers: Iterable[int], at_once: int, done: Callable[[Line], None]
) -> None:
    """Play games to their ends, several at once.

    Args:
        folder: of the tournament.
        settings: of the tournament.
        numbers: the games.
        at_once: how many at the same time.
        done: given each game's line as it is finished, in whatever order that is.

    Raises:
        MissingServiceError: the runtime is not installed.
        WsapError: a game failed; the others are stopped, and all can be gone on with.
    """
    with runtime_services(str(folder / DATABASE)) as services, _Begun(folder / BEGUN) as begun:
        asyncio.run(_play(services, settings, list(numbers), at_once, begun, done))


async def _play(
    services: Services,
    settings: Settings,
    numbers: list[int],
    at_once: int,
    begun: _Begun,
    done: Callable[[Line], None],
) -> None:
    waiting = iter(numbers)

    async def table() -> None:
        for number in waiting:
            done(await _game(services, settings, fixture(settings, number), begun))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(numbers))):
                group.create_task(table())
    except BaseExceptionGroup as errors:
        raise _first(errors) from errors


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


async def _game(services: Services, settings: Settings, drawn: Fixture, begun: _Begun) -> Line:
    runner = services.require("runner")
    options = {**settings.options, "names": list(drawn.names)}
    players = {seat_name(seat): _player(settings, entrant) for seat, entrant in enumerate(drawn.seats)}
    run = begun.runs.get(drawn.number)
    summary: Mapping[str, Any] = await runner.play(
        "tossim",
        players,
        seed=drawn.seed,
        options=options,
        run=run,
        begun=lambda run_id: begun.add(drawn.number, run_id),
    )
    run = begun.runs[drawn.number]
    seats = [{"name": n, "agent": p.agent, "options": dict(p.options)} for n, p in players.items()]
    head = {"format": RUN_FORMAT, "format_version": 1, "game": "tossim", "config": {"options": options, "seats": seats}}
    record = record_of_run([head, *services.require("runs").events(run)], run)
    game = record.game
    if game.ending is None or game.seed != drawn.seed:
        why = "was not played to its end" if game.ending is None else f"has the seed {game.seed}, not {drawn.seed}"
        raise WireError(f"Game {drawn.number + 1}, which is run {run}, {why}.")
    return line_of(settings, drawn, game, (), _repaired(summary, players), run)


def _player(settings: Settings, entrant: int) -> Player:
    one = settings.entrants[entrant]
    options = {"model": one.address, **settings.model_options} if one.kind == "model" else {}
    return Player(_AGENTS[one.kind], options)


def _repaired(summary: Mapping[str, Any], players: Mapping[str, Player]) -> list[int]:
    """Return for each seat how many of its decisions had to be made for it."""
    by_name = {str(seat.get("seat")): seat for seat in summary.get("seats", ()) if isinstance(seat, Mapping)}
    return [int(by_name.get(name, {}).get("forced") or 0) for name in players]


class _Begun:
    """Which run each game is, a line for each; what is left of a line that was cut off is taken away."""

    def __init__(self, path: Path) -> None:
        self.runs: dict[int, str] = {}
        try:
            data = path.read_bytes() if path.exists() else b""
            whole = data[: data.rfind(b"\n") + 1]
            for row in map(json.loads, whole.splitlines()):
                self.runs[int(row["game"])] = str(row["run"])
            if whole != data:
                with path.open("r+b") as file:
                    file.truncate(len(whole))
            self._file = path.open("ab")
        except (ValueError, KeyError, TypeError) as error:
            raise WireError(f"{str(path)!r} is damaged: {error}.") from error
        except OSError as error:
            raise UsageError(f"{str(path)!r} can't be used: {error.strerror or error}.") from error

    def add(self, game: int, run: str) -> None:
        self.runs[game] = run
        self._file.write(json.dumps({"game": game, "run": run}).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> _Begun:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
