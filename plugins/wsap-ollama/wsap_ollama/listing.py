"""The models that a local Ollama has pulled, for `wsap models`."""

from __future__ import annotations

import asyncio
from typing import Any

from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing, ModelInfo
from wsap_core.seams.model import Abilities
from wsap_core.seams.model_errors import BackendError
from wsap_ollama.backend import ModelCard, card_of, client_of, place_of
from wsap_ollama.failures import error_of
from wsap_ollama.options import options_of

AT_ONCE = 8
"""Most concurrent requests for information about models."""


async def listing(context: Context) -> Listing:
    """Return the pulled models; an unavailable server is reported in the listing."""
    options = options_of(context.config)
    place = place_of(options)
    client: Any = client_of(options)  # its `close` has no types
    gate = asyncio.Semaphore(AT_ONCE)

    async def look(model: Any) -> ModelInfo | None:
        # Any: the client's loosely typed row.
        if not model.model:
            return None
        try:
            async with gate:
                card = card_of(await client.show(model.model))
        except Exception:
            card = ModelCard()  # it may have been removed between the two requests
        if card.capabilities and "completion" not in card.capabilities:
            return None  # an embedding model
        return ModelInfo(
            f"ollama/{model.model}",
            _abilities(card),
            _detail(model),
            tools="tools" in card.capabilities,
            weights=int(model.size) if model.size else None,
            context_bytes=card.context_bytes,
            sizable=True,
        )

    try:
        found = await client.list()
        infos = await asyncio.gather(*(look(model) for model in found.models))
    except Exception as error:
        told = error_of(error, "ollama/", place, options.timeout)
        assert isinstance(told, BackendError)
        return Listing("ollama", place, reason=str(told))
    finally:
        await client.close()
    models = [info for info in infos if info is not None]
    note = "" if models else "no model is pulled yet; get one with: ollama pull qwen3:8b"
    return Listing("ollama", place, models, note=note)


def _abilities(card: ModelCard) -> Abilities:
    return Abilities(
        json_schema=True,
        prefill=True,
        images="vision" in card.capabilities if card.capabilities else None,
        thinking="thinking" in card.capabilities,
        context=card.context,
    )


def _detail(model: Any) -> str:
    details = model.details
    parts = [details.parameter_size, details.quantization_level] if details is not None else []
    if model.size:
        parts.append(f"{int(model.size) / 1e9:.1f} GB")
    return ", ".join(str(part) for part in parts if part)
