"""Evaluations of entrants and games on the same seeds, with intervals, failures and cost.

    from wsap_eval import evaluate

    found = evaluate(games=["minigrid"], entrants=["random", "minigrid-finder"], seeds=20)
    found.table()

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_eval.frames import Evaluated as Evaluated
    from wsap_eval.frames import evaluate as evaluate
    from wsap_eval.frames import read as read

__all__ = ["Evaluated", "evaluate", "read"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wsap_eval import frames  # deferred for weight

    return getattr(frames, name)
