"""The nexus: where agents are when they are in no world, and what moves them between worlds.

`nexus` runs it all; `sessions` plays agents in worlds; `entering` and `leaving` move them; `place` is the nexus as a
world that an agent perceives and acts in.
"""
