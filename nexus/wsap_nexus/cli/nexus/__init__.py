"""`wsap nexus`: the hub that agents live in."""
