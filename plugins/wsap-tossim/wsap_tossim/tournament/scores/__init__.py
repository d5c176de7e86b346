"""Measures and ratings of a tournament."""
