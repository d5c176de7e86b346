"""WSAP's games for trainers of language models."""
