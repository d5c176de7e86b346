"""What every HTTP surface here shares: errors, limits, tokens."""
