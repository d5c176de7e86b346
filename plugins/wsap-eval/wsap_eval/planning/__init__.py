"""What an evaluation is to play: its suite, its plan, and what of it is due."""
