"""The games of a nexus: which there are, those in other processes, and those that were renamed."""
