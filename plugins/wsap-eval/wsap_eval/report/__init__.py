"""The HTML report of an evaluation: one file that needs no network."""

from __future__ import annotations
