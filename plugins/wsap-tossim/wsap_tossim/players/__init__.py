"""Players without a model: random, or scripted, which claim, doubt, vote with reasons and lie."""
