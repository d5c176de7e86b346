"""The Perception/Command protocol: its models, vocabularies, versions and errors."""
