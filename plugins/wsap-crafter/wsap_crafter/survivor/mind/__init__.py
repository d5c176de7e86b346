"""What the survivor knows: its map, its memory, the game's rules, and paths over them."""
