"""The plugin's registrations. Light: the engine is not imported here."""

from __future__ import annotations
