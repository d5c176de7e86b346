"""Agents entering and leaving worlds with their items and skills."""
