"""Engines behind the bridge, all with one interface."""
