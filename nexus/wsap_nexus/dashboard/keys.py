"""The key in the address that is printed at the start: good once, for whoever was shown it."""

from __future__ import annotations

import hmac
import secrets


class OneTimeKey:
    """A random key that opens once. It travels in the fragment of an address, which browsers send nowhere."""

    def __init__(self) -> None:
        self._key: str | None = secrets.token_urlsafe(16)

    @property
    def fragment(self) -> str:
        """What is appended to the dashboard's address; empty once it was used."""
        return f"#key={self._key}" if self._key else ""

    def use(self, given: str) -> bool:
        """Return whether it is the key; it is good no longer then."""
        if self._key is None or not hmac.compare_digest(given.encode(), self._key.encode()):
            return False
        self._key = None
        return True
