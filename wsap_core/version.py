"""The version of the protocol."""

from __future__ import annotations

PROTOCOL_VERSION = "1.0.0"
"""The version of the Wild Spaces Agent Protocol that this kernel speaks (SemVer)."""
