"""Tournaments: many games between entrants, their results, and a report."""
