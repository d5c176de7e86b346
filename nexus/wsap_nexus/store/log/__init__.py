"""The writer of the event log: validation, compression, and the commits of groups of events."""
