"""Text and pictures of untrusted origin in prompts, and estimates of their tokens."""
