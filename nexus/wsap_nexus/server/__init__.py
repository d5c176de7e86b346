"""The nexus over HTTP: the wire API under `/nexus`, and the dashboard. Other machines need a token."""
