"""Games as training data: each player's turns as that player saw them, and their outcome.

sources    recorded runs, game records and tournament results as games to replay
walk       replays a game through the world, turn by turn
sent       recorded prompts of models
lines      the output formats, with their JSON Schemas
games      games as lines: turns for fine-tuning, and whole games with their outcome as reward
writing    lines into a file
"""

from __future__ import annotations
