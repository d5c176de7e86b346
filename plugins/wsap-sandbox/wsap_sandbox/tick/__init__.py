"""One tick: what each asker may know, who is asked when, how replies are read, and what they change."""

from __future__ import annotations
