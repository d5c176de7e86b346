"""The storyteller: a backend without a language model."""
