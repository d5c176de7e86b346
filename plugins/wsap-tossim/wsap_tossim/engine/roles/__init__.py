"""The roles, by faction."""
