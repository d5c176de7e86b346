"""Concurrent games with models, recorded by the runtime.

Each game is a run in the tournament's database `runs.db`. The run's id is stored before the game starts, so that an
interrupted game is resumed without repeating calls. Answers about beliefs are stored one by one in `beliefs.jsonl`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

from wsap_core.errors import WireError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_core.seams.services import Player, Services, runtime_services
from wsap_llm.kit import Budget, ModelPool, Price, Waited
from wsap_tossim.engine.data.record import Entry
from wsap_tossim.engine.game import WRITINGS, Game
from wsap_tossim.options import seat_name
from wsap_tossim.players.decider import Decider
from wsap_tossim.replay.runs import RUN_FORMAT, record_of_run
from wsap_tossim.tournament.asking import Answers, ask_day, manner_of
from wsap_tossim.tournament.journal import Journal
from wsap_tossim.tournament.ledger import Line
from wsap_tossim.tournament.plan import Fixture, Settings, fixture
from wsap_tossim.tournament.play import line_of
from wsap_tossim.tournament.questions import evenings, question, scripted_beliefs
from wsap_tossim.tournament.spending import spent_on, usage_by_seat

__all__ = ["BELIEFS", "DATABASE", "play_with_models", "player_of", "spent_unfinished"]

Watch = Callable[[Waited], Coroutine[Any, Any, None]]
"""Shows what models are waited for, until it is cancelled."""
DATABASE, BEGUN, BELIEFS = "runs.db", "begun.jsonl", "beliefs.jsonl"
_AGENTS = {"scripted": "tossim-player", "random": "tossim-random", "model": "llm"}


def play_with_models(
    folder: Path,
    settings: Settings,
    numbers: Iterable[int],
    at_once: int,
    done: Callable[[Line], None],
    *,
    played: Mapping[int, Line],
    budget: Budget,
    prices: Mapping[str, Price] | None = None,
    watch: Watch | None = None,
) -> None:
    """Play games concurrently to their end.

    Args:
        folder: of the tournament.
        settings: of the tournament.
        numbers: the games.
        at_once: number of concurrent games.
        done: called with the line of each finished game, in any order.
        played: finished games by number, whose usage counts toward the budget.
        budget: for the whole tournament, with nothing spent yet.
        prices: model address -> price.
        watch: runs meanwhile.

    Raises:
        MissingServiceError: the runtime is not installed.
        BudgetReachedError: a limit was reached; all games have stopped, and can be resumed.
        WsapError: a game failed; all have stopped, and can be resumed.
    """
    with ExitStack() as stack:
        begun = _Begun(stack.enter_context(Journal(folder / BEGUN)))
        answers = Answers(stack.enter_context(Journal(folder / BELIEFS)))
        services = stack.enter_context(runtime_services(str(folder / DATABASE), budgets=(budget,), prices=prices))
        unfinished = _unfinished(settings, played, begun, answers, services)
        budget.spent = sum((playing + asked for playing, asked in unfinished.values()), spent_on(played.values()))
        asyncio.run(_Tables(services, settings, begun, answers).play(list(numbers), at_once, done, watch))


def spent_unfinished(folder: Path, settings: Settings, played: Mapping[int, Line]) -> dict[int, tuple[Usage, Usage]]:
    """Return the model usage of games that are not among `played`: entrant -> for playing, for beliefs.

    Raises:
        WsapError: the recorded runs can't be read.
    """
    if not (folder / BEGUN).exists():
        return {}
    with ExitStack() as stack:
        begun = _Begun(stack.enter_context(Journal(folder / BEGUN)))
        if begun.runs.keys() <= played.keys():
            return {}
        answers = Answers(stack.enter_context(Journal(folder / BELIEFS)))
        services = stack.enter_context(runtime_services(str(folder / DATABASE)))
        return _unfinished(settings, played, begun, answers, services)


def _unfinished(
    settings: Settings, played: Mapping[int, Line], begun: _Begun, answers: Answers, services: Services
) -> dict[int, tuple[Usage, Usage]]:
    found: dict[int, tuple[Usage, Usage]] = {}
    for number, run in begun.runs.items():
        if number in played:
            continue
        playing, asked = usage_by_seat(services.require("runs").events(run)), answers.spent(number)
        for seat, entrant in enumerate(fixture(settings, number).seats):
            before = found.get(entrant, (NO_USAGE, NO_USAGE))
            more = playing.get(seat_name(seat), NO_USAGE), asked.get(seat, NO_USAGE)
            found[entrant] = before[0] + more[0], before[1] + more[1]
    return found


class _Tables:
    def __init__(self, services: Services, settings: Settings, begun: _Begun, answers: Answers) -> None:
        self._services = services
        self._settings = settings
        self._begun = begun
        self._answers = answers

    async def play(
        self, numbers: Sequence[int], at_once: int, done: Callable[[Line], None], watch: Watch | None
    ) -> None:
        waiting, models = iter(numbers), self._services.require("models")
        watching = None
        if watch is not None and isinstance(models, ModelPool):
            watching = asyncio.create_task(watch(models.waited))
        reached: list[BudgetReachedError] = []

        async def table() -> None:
            for number in waiting:
                try:
                    done(await self._game(fixture(self._settings, number)))
                except BudgetReachedError as error:
                    # The other games continue until they reach it too, so that no pending reply is lost.
                    reached.append(error)
                if reached:
                    return

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(numbers))):
                    group.create_task(table())
        except BaseExceptionGroup as errors:
            raise _first(errors) from errors
        finally:
            if watching is not None:
                watching.cancel()
            await models.aclose()
        if reached:
            raise reached[0]

    async def _game(self, drawn: Fixture) -> Line:
        settings, services = self._settings, self._services
        options = {**settings.options, "names": list(drawn.names)}
        players = {seat_name(seat): player_of(settings, entrant) for seat, entrant in enumerate(drawn.seats)}
        await services.require("runner").play(
            "tossim",
            players,
            seed=drawn.seed,
            options=options,
            run=self._begun.runs.get(drawn.number),
            begun=lambda run_id: self._begun.add(drawn.number, run_id),
        )
        run = self._begun.runs[drawn.number]
        seats = [{"name": n, "agent": p.agent, "options": dict(p.options)} for n, p in players.items()]
        config = {"seed": drawn.seed, "options": options, "seats": seats}
        head = {"format": RUN_FORMAT, "format_version": 1, "game": "tossim", "config": config}
        events = list(services.require("runs").events(run))
        game = _in_order(record_of_run([head, *events], run).game)
        if game.ending is None or game.seed != drawn.seed:
            why = "was not played to its end" if game.ending is None else f"has the seed {game.seed}, not {drawn.seed}"
            raise WireError(f"Game {drawn.number + 1} (run {run}) {why}.")
        taken = usage_by_seat(events)
        usage = [taken.get(n, NO_USAGE) if p.agent == "llm" else None for n, p in players.items()]
        beliefs, asked = await self._beliefs(drawn, game, events, players)
        forced = _forced(events)
        refused = [forced[name] for name in players]
        return line_of(settings, drawn, game, beliefs, refused, run=run, usage=usage, asked=asked or None)

    async def _beliefs(
        self, drawn: Fixture, game: Game, events: Sequence[Mapping[str, Any]], players: Mapping[str, Player]
    ) -> tuple[list[tuple[int, int, Mapping[int, float]]], list[Usage | None]]:
        """Return the players' beliefs at the end of each day, and the usage of asking for them."""
        settings = self._settings
        kinds = [settings.entrants[e].kind for e in drawn.seats]
        deciders: dict[int, Decider] = {}
        known: list[tuple[int, int, Mapping[int, float] | None]] = []
        questions = []
        for evening in evenings(game):
            day, player, _ = evening
            if kinds[player] != "model":
                known.append((day, player, scripted_beliefs(kinds[player], evening, drawn.names, deciders)))
            elif settings.beliefs:
                known.append((day, player, None))
                questions.append(question(evening, drawn.names))
        given: dict[tuple[int, int], Mapping[int, float]] = {}
        usage: list[Usage | None] = [NO_USAGE if k == "model" else None for k in kinds] if settings.beliefs else []
        backends, manners = {}, {}
        for seat, (name, one) in enumerate(players.items()):
            if kinds[seat] == "model" and questions:
                models = self._services.require("models")
                backends[seat] = await models.open(str(one.options["model"]), one.options)
                manners[seat] = manner_of(events, name, one.options)
        for day, together in groupby(questions, key=lambda q: q.day):
            asked = [(q, backends[q.player], manners[q.player]) for q in together]
            for player, answer in (await ask_day(drawn.number, asked, drawn.names, self._answers)).items():
                given[day, player] = answer.evil
                usage[player] = (usage[player] or NO_USAGE) + answer.usage
        return [(day, who, given[day, who] if evil is None else evil) for day, who, evil in known], usage


def _in_order(game: Game) -> Game:
    """Return the game with the papers of each round in seat order.

    At night all act at once, so the order of papers depends on how fast models answer; the record must not.
    """
    again = Game(game.setup, game.rules, game.seed)
    again.repeat(sorted(game.record, key=lambda entry: (entry.round, entry.verb not in WRITINGS, _writer(entry))))
    return again


def _writer(entry: Entry) -> int:
    return entry.player if entry.verb in WRITINGS else 0


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def player_of(settings: Settings, entrant: int) -> Player:
    """Return an entrant as a player of the runtime."""
    one = settings.entrants[entrant]
    options = {"model": one.address, **settings.model_options} if one.kind == "model" else {}
    return Player(_AGENTS[one.kind], options)


def _forced(events: Sequence[Mapping[str, Any]]) -> Counter[str]:
    chosen = (event for event in events if event["kind"] == "chosen")
    return Counter(str(e["seat"]) for e in chosen if (e["body"].get("decision") or {}).get("forced"))


class _Begun:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        try:
            self.runs = {int(row["game"]): str(row["run"]) for row in journal.rows}
        except (ValueError, KeyError, TypeError) as error:
            raise WireError(f"{BEGUN} is damaged: {type(error).__name__}: {error}.") from error

    def add(self, game: int, run: str) -> None:
        self.runs[game] = run
        self._journal.add({"game": game, "run": run})
