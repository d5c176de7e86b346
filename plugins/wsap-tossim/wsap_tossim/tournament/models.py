"""Games with models, recorded by the runtime.

Each game is a run in the tournament's database `runs.db`, whose id follows from the settings and the game's number, so
that an interrupted game is resumed without repeating calls. Answers about beliefs are stored one by one in
`beliefs.jsonl`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from wsap_core.errors import WireError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.services import CommandModels, Player, RunReader, Services, runtime_services
from wsap_eval.kit import Journal, run_id
from wsap_llm.kit import Budget, Price
from wsap_tossim.engine import game as engine
from wsap_tossim.engine.data.record import WRITINGS, Entry
from wsap_tossim.options import seat_name
from wsap_tossim.players.decider import Decider
from wsap_tossim.replay.runs import RUN_FORMAT, record_of_run
from wsap_tossim.tournament.asking import Answers, ask_day, manner_of
from wsap_tossim.tournament.games import Game, PlayedGame, line_of
from wsap_tossim.tournament.ledger import Line, packed_json, row_in
from wsap_tossim.tournament.plan import Fixture, Settings, fixture
from wsap_tossim.tournament.questions import evenings, question, scripted_beliefs
from wsap_tossim.tournament.spending import spent_on, usage_by_seat

__all__ = ["BELIEFS", "DATABASE", "Tables", "opened", "player_of", "spent_unfinished"]

DATABASE, BELIEFS = "runs.db", "beliefs.jsonl"
_AGENTS = {"scripted": "tossim-player", "random": "tossim-random", "model": "llm"}


@contextmanager
def opened(
    folder: Path,
    settings: Settings,
    *,
    played: Mapping[int, Line],
    budget: Budget,
    prices: Mapping[str, Price] | None = None,
) -> Iterator[Tables]:
    """Open the tournament's database, and yield what plays games with models.

    Args:
        folder: of the tournament.
        settings: of the tournament.
        played: finished games by number, whose usage counts toward the budget.
        budget: for the whole tournament, with nothing spent yet.
        prices: model address -> price.

    Raises:
        MissingServiceError: the runtime is not installed.
    """
    with ExitStack() as stack:
        answers = Answers(stack.enter_context(Journal(folder / BELIEFS, row_in, synced=True)))
        services = stack.enter_context(runtime_services(str(folder / DATABASE), budgets=(budget,), prices=prices))
        unfinished = _unfinished(settings, played, answers, services)
        budget.spent = sum((playing + asked for playing, asked in unfinished.values()), spent_on(played.values()))
        yield Tables(services, settings, answers)


def spent_unfinished(folder: Path, settings: Settings, played: Mapping[int, Line]) -> dict[int, tuple[Usage, Usage]]:
    """Return the model usage of games that are not among `played`: entrant -> for playing, for beliefs.

    Raises:
        WsapError: the recorded runs can't be read.
    """
    if not (folder / DATABASE).exists():
        return {}
    with ExitStack() as stack:
        answers = Answers(stack.enter_context(Journal(folder / BELIEFS, row_in, synced=True)))
        services = stack.enter_context(runtime_services(str(folder / DATABASE)))
        return _unfinished(settings, played, answers, services)


def _unfinished(
    settings: Settings, played: Mapping[int, Line], answers: Answers, services: Services
) -> dict[int, tuple[Usage, Usage]]:
    runs: RunReader = services.require("runs")
    found: dict[int, tuple[Usage, Usage]] = {}
    for run in runs.runs():
        own, _, digits = run.rpartition("-")
        if own != _run_of(settings) or not digits.isdigit() or int(digits) in played:
            continue
        number = int(digits)
        playing, asked = usage_by_seat(runs.events(run)), answers.spent(number)
        for seat, entrant in enumerate(fixture(settings, number).seats):
            before = found.get(entrant, (NO_USAGE, NO_USAGE))
            more = playing.get(seat_name(seat), NO_USAGE), asked.get(seat, NO_USAGE)
            found[entrant] = before[0] + more[0], before[1] + more[1]
    return found


def _run_of(settings: Settings) -> str:
    """Return the first part of the ids of a tournament's runs, which the number of the game follows."""
    return run_id(packed_json(settings.to_json()))


class Tables:
    """Plays games with models; each is a recorded run, which is resumed if it has begun."""

    def __init__(self, services: Services, settings: Settings, answers: Answers) -> None:
        self.models: CommandModels = services.require("models")
        self._services = services
        self._settings = settings
        self._answers = answers

    async def play(self, game: Game) -> PlayedGame:
        """Play a game to its end, ask for beliefs, and return it.

        Raises:
            BudgetReachedError: a limit was reached; the game can be resumed.
            WsapError: the game failed; it can be resumed.
        """
        begun = time.monotonic()
        line = await self._line(fixture(self._settings, game.number))
        return PlayedGame(game.key, line, time.monotonic() - begun)

    async def _line(self, drawn: Fixture) -> Line:
        settings, services = self._settings, self._services
        options = {**settings.options, "names": list(drawn.names)}
        players = {seat_name(seat): player_of(settings, entrant) for seat, entrant in enumerate(drawn.seats)}
        run = f"{_run_of(settings)}-{drawn.number}"
        await services.require("runner").play("tossim", players, seed=drawn.seed, options=options, run=run)
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
        self, drawn: Fixture, game: engine.Game, events: Sequence[Mapping[str, Any]], players: Mapping[str, Player]
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
                backends[seat] = await self.models.open(str(one.options["model"]), one.options)
                manners[seat] = manner_of(events, name, one.options)
        for day, together in groupby(questions, key=lambda q: q.day):
            asked = [(q, backends[q.player], manners[q.player]) for q in together]
            for player, answer in (await ask_day(drawn.number, asked, drawn.names, self._answers)).items():
                given[day, player] = answer.evil
                usage[player] = (usage[player] or NO_USAGE) + answer.usage
        return [(day, who, given[day, who] if evil is None else evil) for day, who, evil in known], usage


def _in_order(game: engine.Game) -> engine.Game:
    """Return the game with the papers of each round in seat order.

    At night all act at once, so the order of papers depends on how fast models answer; the record must not.
    """
    again = engine.Game(game.setup, game.rules, game.seed)
    again.repeat(sorted(game.record, key=lambda entry: (entry.round, entry.verb not in WRITINGS, _writer(entry))))
    return again


def _writer(entry: Entry) -> int:
    return entry.player if entry.verb in WRITINGS else 0


def player_of(settings: Settings, entrant: int) -> Player:
    """Return an entrant as a player of the runtime."""
    one = settings.entrants[entrant]
    options = {"model": one.address, **settings.model_options} if one.kind == "model" else {}
    return Player(_AGENTS[one.kind], options)


def _forced(events: Sequence[Mapping[str, Any]]) -> Counter[str]:
    chosen = (event for event in events if event["kind"] == "chosen")
    return Counter(str(e["seat"]) for e in chosen if (e["body"].get("decision") or {}).get("forced"))
