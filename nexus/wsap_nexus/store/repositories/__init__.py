"""What is written of the nexus, by what it is about: the log, agents, their things, worlds, and stays."""
