"""Whether what an agent learned in one game helps it in another: lives, arms, and a verdict."""

from __future__ import annotations
