"""A run in play: the loop of each seat, how seats wait for each other, and how they are controlled and saved."""
