"""The bodies of requests and responses, which also document them."""
