"""Results in the forms of other tools; each writer is imported when it is used."""

from __future__ import annotations
