"""The phrases of the storyteller, by language, and the grammar that puts them together."""
