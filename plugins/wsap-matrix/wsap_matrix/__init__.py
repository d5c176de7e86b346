"""Repeated matrix games as worlds."""
