"""The table: one row for each game and entrant, with what its figure rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wsap_eval.records import EpisodeRecord

__all__ = ["Cell", "cells_of"]


@dataclass(frozen=True)
class Cell:
    """An entrant in a game."""

    game: str
    entrant: str
    episodes: tuple[EpisodeRecord, ...]

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Outcome -> episodes."""
        return Counter(record.outcome for record in self.episodes)

    @property
    def values(self) -> Sequence[float]:
        """The figure of each scored episode."""
        return [record.value for record in self.episodes if record.value is not None]

    @property
    def trajectories(self) -> int:
        """How many different trajectories its episodes have."""
        return len({record.trajectory for record in self.episodes if record.trajectory})


def cells_of(records: Iterable[EpisodeRecord]) -> list[Cell]:
    """Return the cells, by game and entrant in the order of the records."""
    found: dict[tuple[str, str], list[EpisodeRecord]] = {}
    for record in records:
        found.setdefault((record.game, record.entrant), []).append(record)
    return [Cell(game, entrant, tuple(episodes)) for (game, entrant), episodes in found.items()]
