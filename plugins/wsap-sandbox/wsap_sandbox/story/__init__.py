"""How a story reaches people: as Markdown, as a page, as a view, and by a webhook; all from its run's log."""
