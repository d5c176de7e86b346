"""The dashboard: pages for people, and what they are told."""
