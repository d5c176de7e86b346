"""The agent `morrowind-wayfarer`, which plays by rules and sees perceptions alone."""
