"""Repositories of the nexus, one per kind of record: events, agents, items, worlds and sessions."""
