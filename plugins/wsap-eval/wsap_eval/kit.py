"""Public API for plugins that have evaluations of their own, such as tournaments, played and kept like those here.

Runner        plays jobs in this process, in worker processes or on a cluster, and stops in good order
Due           offers the jobs that are missing, in their order
Way           which jobs are played where
Work          what worker processes play
Reports       who is told how far it is (`Progress`), and that it stops; `NOBODY` by default
Journal       an append-only file of lines, with `locked` for its folder
Live          shows the progress at a terminal
EpisodeKey    tells games apart
square        seats by Latin square: each entrant plays each seat once
run_id        the id of a recorded run, derived from a text
to_csv        a table as CSV, in which spreadsheets run nothing

Statistics are in `wsap_eval.stats`. Everything else may change with any version.
"""

from __future__ import annotations

from wsap_eval.commands.live import Live
from wsap_eval.export.flat import to_csv
from wsap_eval.jobs.journal import Journal, locked
from wsap_eval.jobs.runner import NOBODY, Progress, Reports, Runner, Way
from wsap_eval.jobs.work import Work
from wsap_eval.planning.due import NO_LIMITS, Due
from wsap_eval.planning.plan import run_id
from wsap_eval.records import EpisodeKey
from wsap_eval.stats.square import Turn, drawn_places, square, turn_of

__all__ = [
    "NOBODY", "NO_LIMITS", "Due", "EpisodeKey", "Journal", "Live", "Progress", "Reports", "Runner", "Turn", "Way",
    "Work", "drawn_places", "locked", "run_id", "square", "to_csv", "turn_of",
]  # fmt: skip
