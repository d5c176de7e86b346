"""The rules of the actions: when each is refused, and what it does."""
