"""What a player reads of the game."""
