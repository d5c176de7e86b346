"""Guides that bind a model's reply to a form, token by token."""
