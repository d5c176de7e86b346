"""The seams: protocols for games, agents, models, memories, tools and services."""
