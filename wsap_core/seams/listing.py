"""The models that a backend offers, as `wsap models` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wsap_core.seams.model import Abilities


@dataclass(frozen=True)
class ModelInfo:
    """A model that is available now."""

    address: str
    """Such as `ollama/qwen3:8b`."""
    abilities: Abilities = field(default_factory=Abilities)
    detail: str = ""
    """Size, quantization and so on, in a few words."""
    tools: bool = False
    """Whether it was trained to call tools."""
    weights: int | None = None
    """Bytes that it takes when loaded, if known."""
    context_bytes: int | None = None
    """Additional bytes per token of context, if known."""
    sizable: bool = False
    """Whether requests can set its context window with the option `num_ctx`."""


@dataclass(frozen=True)
class Listing:
    """The models of one provider."""

    provider: str
    """The name of the backend."""
    place: str = ""
    """The address of the server; empty if there is none."""
    models: Sequence[ModelInfo] = ()
    reason: str = ""
    """Why the models can't be listed, in one sentence; empty if they can."""
    note: str = ""
    """A remark, in one sentence."""

    @property
    def reachable(self) -> bool:
        """Whether the provider answered."""
        return not self.reason
