"""The storyteller: a backend that tells worlds without a language model."""
