"""The embedded engine: places of tiles, bodies, creatures and their rules, in whole numbers."""
