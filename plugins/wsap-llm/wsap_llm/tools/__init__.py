"""The built-in tools.

calculator   arithmetic, within bounds
notes        an agent's own notes, by title
recall       a search of the agent's memory
"""

from __future__ import annotations
