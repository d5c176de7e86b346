"""Memories that agents bring to episodes, and texts scrambled for controls."""
