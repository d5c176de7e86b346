"""The key in the address that `wsap nexus start` prints, which unlocks the page once."""

from __future__ import annotations

import hmac
import secrets


class OneTimeKey:
    """A random key for one use, in the fragment of the address, which browsers do not send."""

    def __init__(self) -> None:
        self._key: str | None = secrets.token_urlsafe(16)

    @property
    def fragment(self) -> str:
        """The suffix of the dashboard's address; empty once the key has been used."""
        return f"#key={self._key}" if self._key else ""

    def renew(self) -> str:
        """Replace the key, used or not, and return the new suffix."""
        self._key = secrets.token_urlsafe(16)
        return self.fragment

    def use(self, given: str) -> bool:
        """Return whether a key is valid, and invalidate it if so."""
        if self._key is None or not hmac.compare_digest(given.encode(), self._key.encode()):
            return False
        self._key = None
        return True
