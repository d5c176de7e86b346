"""Runs: agents in one world, recorded, stopped and resumed.

plan        the game, its seats and its limits
run         a new or resumed run
loop        one agent's loop: observe, decide, act, reflect
recorder    the events written to the log
tally       totals, scores and the trajectory hash
controls    pause, step, pace, stop
"""

from __future__ import annotations
