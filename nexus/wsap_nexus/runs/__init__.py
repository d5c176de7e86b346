"""Runs: agents in one world, recorded, stopped and resumed.

plan        what is to be played, by whom
run         a run from its start or from where it stopped
loop        one agent's loop: observe, decide, act, reflect
recorder    what is written to the event log, and how it is read back
tally       totals, scores and the trajectory hash
controls    pause, step, pace, stop
"""

from __future__ import annotations
