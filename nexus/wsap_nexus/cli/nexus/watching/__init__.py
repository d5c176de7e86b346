"""`wsap nexus watch`."""
