"""The commands of evaluations, and what they show while they run."""
