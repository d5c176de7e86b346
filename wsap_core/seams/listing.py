"""The models that a backend can reach, as `wsap models` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wsap_core.seams.model import Abilities


@dataclass(frozen=True)
class ModelInfo:
    """A model that can be asked now."""

    address: str
    """What the user types: `ollama/qwen3:8b`."""
    abilities: Abilities = field(default_factory=Abilities)
    """What is known of it; what is not known is not claimed."""
    detail: str = ""
    """Size, quantisation and the like, in a few words."""
    tools: bool = False
    """Whether it was trained to call tools."""
    weights: int | None = None
    """Bytes that it takes when loaded; None where that is not known."""
    context_bytes: int | None = None
    """Bytes that each token of context takes besides; None where that is not known."""
    sizable: bool = False
    """Whether whoever asks it chooses its context, with the option `num_ctx`."""


@dataclass(frozen=True)
class Listing:
    """What one provider has."""

    provider: str
    """The name of the backend."""
    place: str = ""
    """Where it was asked: an address, or empty where there is no such place."""
    models: Sequence[ModelInfo] = ()
    reason: str = ""
    """Why there is nothing to list, in one sentence; empty if it could be asked."""
    note: str = ""
    """What else is to be known, in one sentence."""

    @property
    def reachable(self) -> bool:
        """Whether it answered."""
        return not self.reason
