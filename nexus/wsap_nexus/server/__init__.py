"""The nexus over HTTP: the wire API under `/nexus`, and the dashboard. Loopback only unless a token guards it."""
