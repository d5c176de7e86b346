"""The figures of an evaluation, in rows, as text and as numbers."""
