"""The factory of the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wsap_core.seams.context import Context
from wsap_outlines.options import VLLM, Options, need_model

if TYPE_CHECKING:
    from wsap_core.seams.model import Backend


def create(context: Context) -> Backend:
    """Return the backend for `outlines/<model>`; the model is loaded on its first use.

    The context has the options `model` (a name on the Hugging Face hub, a folder, a GGUF file or `smollm2`, with
    `vllm:` before it to run it by vLLM) and those of `Options`.

    Raises:
        ConfigError: an option is invalid.
        BadRequestError: there is no model.
    """
    model, options = need_model(context.config), Options.read(context.config)
    if model.startswith(VLLM):
        from wsap_outlines.models.vllm import VllmBackend

        return VllmBackend(model.removeprefix(VLLM), options)
    from wsap_outlines.backend import OutlinesBackend

    return OutlinesBackend(model, options, tell=context.services.progress)
