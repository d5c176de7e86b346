"""The dashboard of a nexus: its page and the routes of its data."""
