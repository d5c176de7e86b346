"""The runtime's commands: play, runs, replay, export, doctor.

Each module holds one click command and imports what it needs when it runs, so that `wsap play
--help` is as quick as the rest.
"""

from __future__ import annotations
