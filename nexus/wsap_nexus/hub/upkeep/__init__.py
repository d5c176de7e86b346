"""What a nexus does so that it can run for months: deletion by age, and passing faults of the machine."""
