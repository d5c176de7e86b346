"""What models may cost."""
