"""The agents of a nexus: who they are, what they remember, say, can and want."""
