"""Worlds in this process, in workers, and in game processes over HTTP."""
