"""Models in this process: their files, and how they are loaded and cached."""
