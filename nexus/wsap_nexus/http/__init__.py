"""What every HTTP surface shares: replies, errors, limits, tokens, and where it listens."""
