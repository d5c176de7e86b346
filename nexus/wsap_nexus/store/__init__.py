"""The database: runs with their events, and the records of the nexus.

database      opens and migrates the file (or server), and explains its errors
eventlog      appends events: the hot path, a thread that compresses and commits in groups
repository    creates and reads runs and events, as the records in `records`
nexus_store   transactions on the records of the nexus
export        a run as JSON lines, and the same for plugins: the kernel's `RunReader`
"""

from __future__ import annotations
