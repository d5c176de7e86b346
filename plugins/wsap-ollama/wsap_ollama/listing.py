"""The models that a local Ollama has pulled, for `wsap models`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing, ModelInfo
from wsap_core.seams.model import Abilities
from wsap_core.seams.model_errors import BackendError
from wsap_ollama.backend import ModelCard, OllamaBackend
from wsap_ollama.options import options_of

# Any, in this module: JSON, as it comes over the wire.

AT_ONCE = 8
"""Most concurrent requests for information about models."""


async def listing(context: Context) -> Listing:
    """Return the pulled models; an unavailable server is reported in the listing."""
    options = options_of(context.config)
    server = OllamaBackend("", options)
    gate = asyncio.Semaphore(AT_ONCE)

    async def look(row: Mapping[str, Any]) -> ModelInfo | None:
        name, size = row.get("model"), row.get("size")
        if not isinstance(name, str) or not name:
            return None
        try:
            async with gate:
                card = await server.card(name)
        except BackendError:
            card = ModelCard()  # it may have been removed between the two requests
        if card.capabilities and "completion" not in card.capabilities:
            return None  # an embedding model
        return ModelInfo(
            f"ollama/{name}",
            _abilities(card),
            _detail(row),
            tools="tools" in card.capabilities,
            weights=size if isinstance(size, int) and size > 0 else None,
            context_bytes=card.context_bytes,
            sizable=True,
        )

    try:
        infos = await asyncio.gather(*map(look, await server.models()))
    except BackendError as error:
        return Listing("ollama", options.place, reason=str(error))
    finally:
        await server.aclose()
    models = [info for info in infos if info is not None]
    note = "" if models else "no model is pulled yet; get one with: ollama pull qwen3:8b"
    return Listing("ollama", options.place, models, note=note)


def _abilities(card: ModelCard) -> Abilities:
    return Abilities(
        json_schema=True,
        prefill=True,
        images="vision" in card.capabilities if card.capabilities else None,
        thinking="thinking" in card.capabilities,
        context=card.context,
    )


def _detail(row: Mapping[str, Any]) -> str:
    details, size = row.get("details"), row.get("size")
    known = details if isinstance(details, dict) else {}
    parts = [known.get("parameter_size"), known.get("quantization_level")]
    if isinstance(size, int) and size > 0:
        parts.append(f"{size / 1e9:.1f} GB")
    return ", ".join(part for part in parts if isinstance(part, str) and part)
