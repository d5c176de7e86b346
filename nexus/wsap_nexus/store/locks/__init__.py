"""Locks that end with their process: of a database by its nexus, and of a run by its player."""
