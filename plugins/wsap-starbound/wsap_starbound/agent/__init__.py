"""The rule-based agent."""
