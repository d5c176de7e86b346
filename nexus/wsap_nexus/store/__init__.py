"""The database: runs with their events, and the records of the nexus.

database      opens and migrates a file or server
eventlog      appends events: the hot path, a thread that compresses and commits in groups
repository    creates and reads runs and events
nexus_store   transactions on the records of the nexus
export        a run as JSON lines, and the kernel's `RunReader` for plugins
"""

from __future__ import annotations
