"""`wsap nexus`: the nexus and its agents."""
