"""The data of a game: its model, rules, events and record."""
