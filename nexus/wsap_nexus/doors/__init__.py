"""What doors to other ecosystems use: worlds driven by plain calls, foreign environments, and outside players."""
