"""Worlds, wherever they run: in this process, in a worker, elsewhere."""
