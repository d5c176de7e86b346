"""Shared by all HTTP servers: replies, errors, limits, tokens and addresses."""
