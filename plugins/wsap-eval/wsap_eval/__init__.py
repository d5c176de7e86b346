"""Evaluations of entrants and games on the same seeds, with intervals, failures and cost.

    from wsap_eval import evaluate

    found = evaluate(games=["minigrid"], entrants=["random", "minigrid-finder"], seeds=20)
    found.table()

Names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_eval.frames import Evaluated as Evaluated
    from wsap_eval.frames import evaluate as evaluate
    from wsap_eval.frames import read as read
    from wsap_eval.planning.question_lists import Question as Question
    from wsap_eval.planning.question_lists import questions as questions

__all__ = ["Evaluated", "Question", "evaluate", "questions", "read"]
_OF_LISTS = ("Question", "questions")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "planning.question_lists" if name in _OF_LISTS else "frames"
    return getattr(importlib.import_module(f"wsap_eval.{module}"), name)  # deferred for weight
