"""The agents of a nexus: identity, memory, conversations, skills and goals."""
