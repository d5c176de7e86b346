"""Routes of recorded runs."""
