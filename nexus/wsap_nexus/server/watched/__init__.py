"""What the page and its clients show of worlds and agents."""
