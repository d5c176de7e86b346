"""What every wrapper passes through."""

from __future__ import annotations

from wsap_core.seams.model import Abilities, Backend


class Wrapper:
    """A backend around a backend."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        """The wrapped backend."""

    @property
    def model(self) -> str:
        """The wrapped backend's address."""
        return self.inner.model

    @property
    def abilities(self) -> Abilities:
        """The wrapped backend's abilities."""
        return self.inner.abilities

    async def aclose(self) -> None:
        """Close the wrapped backend."""
        await self.inner.aclose()
