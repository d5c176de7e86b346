"""Tasks: an episode of a seed each, in a split for training and one for testing that share no seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wsap_core.errors import UsageError

SPLITS: dict[str, range] = {"train": range(1_000_000, 2_000_000), "test": range(200)}
"""Split -> the seeds of its tasks."""
MOST_LISTED = 1000
"""Maximum number of tasks in one answer."""


class NoTaskError(UsageError):
    """There is no such split or task."""

    code = "NO_SUCH_TASK"


@dataclass(frozen=True)
class Task:
    """An episode of one seed."""

    split: str
    index: int

    def __post_init__(self) -> None:
        count = len(seeds_of(self.split))
        if not 0 <= self.index < count:
            raise NoTaskError(f"The split {self.split!r} has the tasks 0 to {count - 1}, not {self.index}.")

    @property
    def seed(self) -> int:
        """The seed."""
        return SPLITS[self.split][self.index]

    def to_json(self, game: str) -> dict[str, Any]:
        """Return the task as clients see it; its `split` and `index`, or its `seed`, are parameters of a reset."""
        name = f"{game}:{self.seed}"
        return {"id": name, "game": game, "split": self.split, "index": self.index, "seed": self.seed}


def seeds_of(split: str) -> range:
    """Return the seeds of a split; NoTaskError if there is none."""
    if split not in SPLITS:
        raise NoTaskError(f"There is no split {split[:60]!r}; there are: {', '.join(SPLITS)}.")
    return SPLITS[split]


def tasks_between(split: str, start: int | None, stop: int | None) -> list[Task]:
    """Return the tasks from `start` up to `stop`, which is left out; NoTaskError if they are too many or not there."""
    count = len(seeds_of(split))
    first, end = start or 0, count if stop is None else stop
    if not 0 <= first <= end <= count:
        raise NoTaskError(f"The split {split!r} has the tasks 0 to {count - 1}, not {first} to {end - 1}.")
    if end - first > MOST_LISTED:
        raise NoTaskError(
            f"At most {MOST_LISTED} tasks are listed at once, and not {end - first}: ask for a task_range."
        )
    return [Task(split, index) for index in range(first, end)]
