"""Keys and typed actions at a terminal."""
