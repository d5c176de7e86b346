"""The checks: what each of them asks of a world or an agent."""
