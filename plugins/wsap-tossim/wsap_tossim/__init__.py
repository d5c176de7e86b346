"""ToSSim, a town of hidden roles: a social-deduction game as a world of the Wild Spaces Agent Protocol."""

from __future__ import annotations
