"""Players without a model: by lot, and scripted ones that claim, doubt, vote with reasons and lie."""
