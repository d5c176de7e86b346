"""Backups, exports, pruning, and the room that is left."""
