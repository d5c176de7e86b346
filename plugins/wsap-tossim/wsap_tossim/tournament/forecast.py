"""What the models of a tournament will take, before it is played.

Who was asked before is taken to go on as it did. Of everybody else it is known how large its prompts are (the
runtime makes the first one without asking anybody); how many decisions a game takes, and how the prompts grow as
it goes on, is seen in a few of the very games to come, played by scripted players.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.services import CallSize, Services, runtime_services
from wsap_core.untrusted import one_line
from wsap_llm.wrappers import Price
from wsap_tossim.context import turn_text
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.model import Option
from wsap_tossim.knowledge import Knowledge
from wsap_tossim.options import TownOptions, seat_name
from wsap_tossim.players.match import play_match
from wsap_tossim.players.minds import Turn
from wsap_tossim.players.scripted import ScriptedMind
from wsap_tossim.tournament.ledger import Line
from wsap_tossim.tournament.models import player_of
from wsap_tossim.tournament.plan import Settings, fixture
from wsap_tossim.tournament.questions import ANSWER, evenings, question
from wsap_tossim.tournament.spending import dollars, spent_by

__all__ = ["DEAR", "LONG", "Forecast", "Share", "foretell"]

LONG = 100
"""Calls from which an estimate is printed before a tournament."""
DEAR = 1.0
"""US dollars from which a person at a terminal is asked first."""
TRIED = 4
"""Games that are tried with scripted players."""
COUNTED = 1000
"""Games whose seats are counted one by one; more of them are alike."""


@dataclass(frozen=True)
class Share:
    """What one model, or all of them, will take."""

    entrant: str
    seats: int
    """That it plays in the games to come."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float | None
    """If it was asked one thing after the other; None where its speed is not known."""
    cost: float | None
    """In US dollars; None where its price is not known."""
    assumed: tuple[str, ...] = ()
    """What it rests on, in sentences."""


@dataclass(frozen=True)
class Forecast:
    """What the games to come will take."""

    games: int
    shares: tuple[Share, ...]
    """Of each entrant that is a model."""
    prices: Mapping[str, Price]
    """Address -> price, as far as it is known."""
    unpriced: tuple[str, ...]
    """Addresses of models whose price is not known."""

    @property
    def total(self) -> Share:
        """What all of them take together."""
        seconds, costs = [s.seconds for s in self.shares], [s.cost for s in self.shares]
        return Share(
            "all models",
            sum(s.seats for s in self.shares),
            sum(s.calls for s in self.shares),
            sum(s.prompt_tokens for s in self.shares),
            sum(s.completion_tokens for s in self.shares),
            None if None in seconds else sum(filter(None, seconds)),
            None if None in costs else sum(filter(None, costs)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {"games": self.games, "total": asdict(self.total), "entrants": [asdict(s) for s in self.shares]}

    def lines(self) -> list[str]:
        """Return it as lines for a person."""
        found = []
        for share in self.shares:
            found.append(f"Estimate for {one_line(share.entrant)}: {_words(share)}.")
            found += [f"  {one_line(sentence)}" for sentence in share.assumed]
        if len(self.shares) > 1:
            found.append(f"Estimate for all of {self.games} games: {_words(self.total)}.")
        return found


def _words(share: Share) -> str:
    cost = "cost unknown" if share.cost is None else dollars(share.cost)
    took = "" if share.seconds is None else f", about {share.seconds / 60:.0f} min if asked one by one"
    return (
        f"{share.calls} calls for {share.seats} seats, {share.prompt_tokens} tokens in, "
        f"{share.completion_tokens} out{took}, {cost}"
    )


def foretell(
    settings: Settings, numbers: Sequence[int], lines: Sequence[Line], prices: Mapping[str, Price]
) -> Forecast:
    """Return what the models will take in games to come.

    Args:
        settings: of the tournament.
        numbers: the games to come in which a model takes part; at least one.
        lines: the games that were played before.
        prices: address -> price, as it was typed.

    Raises:
        MissingServiceError: the runtime is not installed.
        WsapError: a model's backend is not installed, or its options are wrong.
    """
    with (
        tempfile.TemporaryDirectory(prefix="wsap-") as scratch,
        runtime_services(str(Path(scratch) / "none.db"), prices=prices) as services,
    ):
        return asyncio.run(_foretold(services, settings, numbers, lines, prices))


async def _foretold(
    services: Services,
    settings: Settings,
    numbers: Sequence[int],
    lines: Sequence[Line],
    prices: Mapping[str, Price],
) -> Forecast:
    counted = [fixture(settings, n).seats for n in numbers[:COUNTED]]
    scale = len(numbers) / len(counted)
    trial: _Trial | None = None
    known, unpriced, shares = dict(prices), [], []
    try:
        for number, entrant in enumerate(settings.entrants):
            if entrant.kind != "model":
                continue
            seats = round(scale * sum(one.count(number) for one in counted))
            trial = trial or _Trial(settings, numbers)
            size = await _size(services, settings, number, trial.first)
            if size.price is None:
                unpriced.append(entrant.address)
            else:
                known[entrant.address] = size.price
            shares.append(_as_before(settings, number, lines, seats, size) or trial.share(entrant.label, seats, size))
    finally:
        await services.require("models").aclose()
    return Forecast(len(numbers), tuple(shares), known, tuple(unpriced))


async def _size(services: Services, settings: Settings, entrant: int, game: Game) -> CallSize:
    """Return what a decision of an entrant takes: in a seat that is asked first, with everybody else scripted."""
    seat = seat_name(game.waiting[0])
    players = {seat: player_of(settings, entrant)}
    size: CallSize = await services.require("runner").size(
        "tossim", players, seat, seed=game.seed, options=settings.options
    )
    return size


def _as_before(settings: Settings, entrant: int, lines: Sequence[Line], seats: int, size: CallSize) -> Share | None:
    """Return what an entrant takes if it goes on as it did; None if it has not played yet."""
    taken = [game + beliefs for game, beliefs in spent_by(entrant, lines)]
    if not taken:
        return None
    each = seats / len(taken)
    costs = [usage.cost for usage in taken]
    calls = round(each * sum(u.calls for u in taken))
    return Share(
        settings.entrants[entrant].label,
        seats,
        calls,
        round(each * sum(u.prompt_tokens for u in taken)),
        round(each * sum(u.completion_tokens for u in taken)),
        None if size.seconds is None else calls * size.seconds,
        None if None in costs else each * sum(filter(None, costs)),
        (f"As its {len(taken)} seats in the games that were played took.",),
    )


class _Trial:
    """A few of the games to come, played by scripted players."""

    def __init__(self, settings: Settings, numbers: Sequence[int]) -> None:
        self._beliefs = settings.beliefs
        options = TownOptions.read(settings.options)
        step = max(1, len(numbers) // TRIED)
        self.games = [fixture(settings, n) for n in numbers[::step][:TRIED]]
        turns: list[int] = []
        asked: list[int] = []
        growth = players = 0
        for drawn in self.games:
            game = Game(options.setup, options.rules, drawn.seed)
            minds = [_Watched(n, drawn.mind_seeds[n], drawn.names) for n in range(len(drawn.seats))]
            play_match(game, minds, beliefs=False)
            players += len(minds)
            turns += [size for mind in minds for size in mind.sizes]
            growth += sum(size - mind.sizes[0] for mind in minds for size in mind.sizes)
            if self._beliefs:
                for evening in evenings(game):
                    one = question(evening, drawn.names)
                    asked.append(estimate_tokens(one.text) - minds[one.player].sizes[0])
        self._turns = len(turns) / players
        """Decisions of a seat in a game."""
        self._growth = max(0.0, growth / max(1, len(turns)))
        """Tokens of a turn beyond those of the first, on average."""
        self._asked = len(asked) / players
        self._asking = sum(asked) / max(1, len(asked))
        """Tokens of a question beyond those of the first turn, on average."""
        self._answer = ANSWER * (players / len(self.games) - 1)
        self.first = Game(options.setup, options.rules, self.games[0].seed)

    def share(self, label: str, seats: int, size: CallSize) -> Share:
        """Return what a model takes that is asked in so many seats, each as often as a scripted player."""
        decisions, asked = seats * self._turns, seats * self._asked
        planned = seats * bool(size.plan)
        prompts = decisions * (size.prompt + self._growth) + asked * (size.prompt + self._asking) + planned * size.plan
        replies = (decisions + planned) * size.reply + asked * self._answer
        calls = round(decisions + asked + planned)
        tried = f"as scripted players made in {len(self.games)} of these games; tools that are used make more"
        sentences = [
            f"{self._turns:.0f} decisions a seat and game, {tried}.",
            f"{size.prompt} tokens in the first prompt, {self._growth:.0f} more on average later.",
            *size.assumed,
        ]
        if self._beliefs:
            sentences.insert(1, f"{self._asked:.1f} questions for beliefs a seat and game.")
        if size.price is None:
            sentences.append(f"What {size.model} costs is not known; say it with --price {size.model}=IN/OUT.")
        tokens = round(prompts), round(replies)
        return Share(
            label,
            seats,
            calls,
            *tokens,
            None if size.seconds is None else calls * size.seconds,
            None if size.price is None else size.price.of(*tokens),
            tuple(sentences),
        )


class _Watched(ScriptedMind):
    """A scripted player that notes how long a model's turns would be."""

    def __init__(self, player: int, seed: int, names: Sequence[str]) -> None:
        super().__init__(player, random.Random(seed), names)  # play, not secrets
        self.sizes: list[int] = []

    def turn(self, knowledge: Knowledge, options: Sequence[Option]) -> Turn:
        """Return what the player does now."""
        self.sizes.append(estimate_tokens(turn_text(knowledge, self.names, options)))
        return super().turn(knowledge, options)
