"""Loads models."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsap_core.installing import install_line
from wsap_core.seams.model_errors import BackendError, ModelNotFoundError
from wsap_outlines.guiding.guides import Guides, Vocabulary
from wsap_outlines.models.cached import CachedModel
from wsap_outlines.models.gguf_files import converted, is_gguf
from wsap_outlines.options import Options, context_of


@dataclass(frozen=True)
class Loaded:
    """A loaded model."""

    model: Any
    """A causal language model of transformers."""
    tokenizer: Any
    """A fast tokenizer of transformers."""
    ends: tuple[int, ...]
    """Tokens that end a reply."""
    context: int | None
    """The context window in tokens."""

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(weights.numel() for weights in self.model.parameters())

    @property
    def dtype(self) -> str:
        """The number format of its computations, or of its packed weights."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        """The device that it runs on."""
        return str(self.model.device)

    @property
    def vocabulary(self) -> int:
        """The size of its output, in tokens."""
        return int(self.model.get_output_embeddings().weight.shape[0])

    def sequence(self) -> CachedModel:
        """Return an empty sequence of the model."""
        return CachedModel(self.model)

    def guides(self, options: Options) -> Guides:
        """Return the model's guides; takes up to a second with a large vocabulary."""
        return Guides(Vocabulary(self.tokenizer, self.vocabulary, self.ends), options.engine)


def load(name: str, options: Options, tell: Callable[[str], None] = lambda words: None) -> Loaded:
    """Load a model (a folder, a GGUF file, `smollm2`, or a name on the Hugging Face hub) and its tokenizer, only from
    safetensors or GGUF and without running a model's code. `tell` is called about slow steps.

    Raises:
        BackendError: torch or transformers is not installed, or there is no such device.
        ModelNotFoundError: there is no such model.
    """
    try:
        import torch  # deferred for weight: seconds and hundreds of megabytes
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        wanted = install_line(f"wsap-outlines[{'gguf' if is_gguf(name) else 'torch'}]")
        raise BackendError(
            f"Models in process require {error.name}: install the build of torch for your machine, then `{wanted}`."
        ) from error
    logging.disable_progress_bar()  # the terminal is the game's
    logging.set_verbosity_error()
    folder = converted(name, tell) if is_gguf(name) else Path(name).expanduser()
    local = folder.is_dir()
    if not local and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise ModelNotFoundError(f"There is no folder {name!r} with a model.")
    device = _device(torch, options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
    source = str(folder) if local else name
    dtype: Any = options.dtype
    if dtype == "auto" and device == "cpu":
        dtype = torch.bfloat16 if _bfloat16_pays() else torch.float32
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local, use_fast=True)
        model = AutoModelForCausalLM.from_pretrained(source, local_files_only=local, use_safetensors=True, dtype=dtype)
    except (OSError, ValueError, ImportError, KeyError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelNotFoundError(f"The model {name!r} can't be loaded: {lines[0][:300]}") from error
    return adopt(model.to(device).eval(), tokenizer, options)


@functools.cache
def _bfloat16_pays() -> bool:
    """Return whether this CPU is 20 % faster in bfloat16 than in float32, by timing both for half a second in all."""
    import torch

    def fastest(dtype: Any) -> float:
        one, other = torch.ones(64, 1024, dtype=dtype), torch.ones(1024, 4096, dtype=dtype)
        end, best = time.perf_counter() + 0.25, float("inf")
        while (begun := time.perf_counter()) < end:
            one @ other
            best = min(best, time.perf_counter() - begun)
        return best

    return fastest(torch.bfloat16) * 1.2 < fastest(torch.float32)


def adopt(model: Any, tokenizer: Any, options: Options) -> Loaded:
    """Return a model that is already in memory as `Loaded`; `BackendError` if no token ends a reply."""
    ends: list[int] = []
    for source in (getattr(model, "generation_config", None), model.config, tokenizer):
        found = getattr(source, "eos_token_id", None)
        ends += [found] if isinstance(found, int) else list(found or ())
    if not ends:
        raise BackendError("The model has no token that ends a reply (eos_token_id), so its replies would never end.")
    context = context_of(model.config.to_dict())
    limits = [limit for limit in (context, options.context) if limit]
    return Loaded(model, tokenizer, tuple(dict.fromkeys(ends)), min(limits, default=None))


def _device(torch: Any, wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise BackendError(
            f"There is no device {wanted!r} here; omit the option to use the best available one."
        ) from error
    return wanted
