"""Games as training data: each player's turns as that player saw them, and their outcome.

sources    recorded runs, game records and results of tournaments, as games that can be walked through
walk       a game played again through the world, turn by turn
lines      the formats of what is written, with their JSON Schemas
games      games as lines: turns for fine-tuning, and whole games with their outcome as reward
writing    lines into a file, whole or not at all
"""

from __future__ import annotations
