"""Tournaments: many games with a field of entrants, what they come to, and a report of it."""
