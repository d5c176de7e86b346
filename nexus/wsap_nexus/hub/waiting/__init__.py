"""Who waits for whom, and for which model."""
