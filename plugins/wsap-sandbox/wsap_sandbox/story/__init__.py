"""Presentation of a story from its run's log: Markdown, HTML page, view, webhook."""
