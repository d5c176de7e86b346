"""What happens at night."""
