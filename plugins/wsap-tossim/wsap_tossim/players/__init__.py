"""Players without a model: random ones, and scripted ones that claim, doubt, vote with reasons and lie."""
