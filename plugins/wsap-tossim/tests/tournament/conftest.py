"""Lines of games as a tournament keeps them, written by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

# The server that speaks the protocols of models lies with the tests of wsap-llm.
if (_home := str(Path(__file__).resolve().parents[3] / "wsap-llm" / "tests")) not in sys.path:
    sys.path.append(_home)

from llm_server.fixtures import server

from wsap_tossim.tournament.plan import Settings, entrants_of
from wsap_tossim.tournament.scores.measures import COUNTS

__all__ = ["server"]

FIVE = ("Sheriff", "Doctor", "Citizen", "Citizen", "Mafioso")


def written(
    game: int,
    seats: Sequence[int],
    winners: Sequence[int],
    side: str | None,
    *,
    block: int | None = None,
    roles: Sequence[str] = FIVE,
    sums: Sequence[dict[str, float]] = (),
) -> dict[str, Any]:
    """Return the line of a game of five without its record."""
    empty: dict[str, float] = dict.fromkeys(COUNTS, 0.0)
    return {
        "game": game,
        "block": game if block is None else block,
        "seed": 7,
        "seats": list(seats),
        "entrants": [("one", "two")[n] for n in seats],
        "names": ["Ann", "Bo", "Cy", "Dana", "Eve"],
        "roles": list(roles),
        "final": list(roles),
        "side": side,
        "winners": list(winners),
        "days": 3,
        "refused": [0] * 5,
        "record": {"game": {"record": []}},
        "measures": [{**empty, **(sums[n] if n < len(sums) else {})} for n in range(5)],
    }


@pytest.fixture
def line() -> Callable[..., dict[str, Any]]:
    return written


@pytest.fixture
def two() -> Settings:
    """A tournament of two entrants."""
    return Settings(entrants_of(["one=scripted", "two=random"]), {"mode": "five"})
