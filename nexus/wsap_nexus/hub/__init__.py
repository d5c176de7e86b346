"""The nexus: the place between worlds, and the transit of agents.

`nexus` runs the services; `sessions` plays agents in worlds; `entering` and `leaving` move them; `place` is the nexus
as a world in which an agent perceives and acts.
"""
