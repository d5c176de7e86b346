"""Crafter's world and its rules, without agents, text or the protocol."""
