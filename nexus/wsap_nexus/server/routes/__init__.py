"""The routes of the wire API, by what they are about."""
