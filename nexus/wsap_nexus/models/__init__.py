"""Budgets for models."""
