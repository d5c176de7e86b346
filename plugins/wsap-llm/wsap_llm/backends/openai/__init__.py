"""Servers with an API in OpenAI's style."""
