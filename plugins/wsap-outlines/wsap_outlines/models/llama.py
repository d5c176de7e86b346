"""Runs GGUF files by llama.cpp, through llama-cpp-python: faster on a CPU, with packed weights in memory.

Tokenizer, constraints, choices and sampling are the same as for transformers.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from typing_extensions import override

from wsap_core.installing import install_line
from wsap_core.seams.model_errors import BackendError, ModelNotFoundError
from wsap_outlines.models.cached import CHUNK, CachedModel, Cancelled
from wsap_outlines.models.gguf_files import SMOLLM2, checked, is_gguf
from wsap_outlines.models.loading import Loaded
from wsap_outlines.options import Options

MOST_CONTEXT = 8192
"""Default limit of the context in tokens: its memory is allocated at once."""


def by_llama(name: str, options: Options) -> bool:
    """Return whether llama.cpp runs a model: a GGUF file without the options `dtype` and `device` (except `cpu`), if
    llama-cpp-python is installed."""
    asked = options.dtype != "auto" or options.device not in ("auto", "cpu")
    return is_gguf(name) and name != SMOLLM2 and not asked and find_spec("llama_cpp") is not None


@dataclass(frozen=True)
class LlamaLoaded(Loaded):
    """A model loaded by llama.cpp; `model` is a `llama_cpp.Llama`."""

    @property
    @override
    def parameters(self) -> int:
        return int(_library().llama_model_n_params(self.model.model))

    @property
    @override
    def dtype(self) -> str:
        said = ctypes.create_string_buffer(128)
        _library().llama_model_desc(self.model.model, said, len(said))
        packed = said.value.decode(errors="replace").split(" ", 2)[-1]  # "Q4_1" of "llama 135M Q4_1"
        return f"{packed} by llama.cpp"

    @property
    @override
    def device(self) -> str:
        return "cpu"

    @property
    @override
    def vocabulary(self) -> int:
        return int(self.model.n_vocab())

    @override
    def sequence(self) -> CachedModel:
        return LlamaSequence(self.model)


def _library() -> Any:  # Any: it is optional, and has no types
    return importlib.import_module("llama_cpp")


def load_llama(name: str, options: Options) -> Loaded:
    """Load a GGUF file.

    Raises:
        ModelNotFoundError: there is no such file, or llama.cpp or transformers can't read it.
        BackendError: torch or transformers, needed for the tokenizer, is not installed.
    """
    library, file = _library(), checked(Path(name).expanduser())
    try:
        from transformers import AutoTokenizer  # deferred for weight
    except ImportError as error:
        raise BackendError(f"GGUF files require {error.name}: `{install_line('wsap-outlines[gguf]')}`.") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name, local_files_only=True)
        model: Any = library.Llama(
            str(file), n_ctx=options.context or MOST_CONTEXT, n_batch=CHUNK, n_threads=options.threads, verbose=False
        )
    except (OSError, ValueError, ImportError, KeyError, AssertionError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelNotFoundError(f"The model {name!r} can't be loaded: {lines[0][:300]}") from error
    ends = {int(model.token_eos()), *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])} - {-1}
    trained = int(library.llama_model_n_ctx_train(model.model))
    return LlamaLoaded(model, tokenizer, tuple(sorted(ends)), min(trained, int(model.n_ctx())))


class LlamaSequence(CachedModel):
    """A sequence of tokens with llama.cpp's cache."""

    @property
    @override
    def device(self) -> str:
        return "cpu"

    @override
    def feed(self, ids: Sequence[int], go_on: Callable[[], bool] = lambda: True) -> Any:
        import numpy as np  # deferred for weight, as torch
        import torch

        for start in range(0, len(ids), CHUNK):
            if not go_on():
                raise Cancelled
            part = list(ids[start : start + CHUNK])
            try:
                self._model.eval(part)
            except RuntimeError as error:
                self.clear()
                raise BackendError(f"llama.cpp failed: {error}.") from error
            self.ids += part
            self.computed += len(part)
        found = _library().llama_get_logits_ith(self._model.ctx, -1)
        return torch.from_numpy(np.ctypeslib.as_array(found, shape=(self._model.n_vocab(),)).copy())

    @override
    def feed_forks(
        self, ids: Sequence[int], forks: Sequence[tuple[int, ...]], go_on: Callable[[], bool] = lambda: True
    ) -> Any:
        import torch

        whole = ([*ids, *fork] for fork in forks)
        rows = [self.feed(one[self.rewind(one) :], go_on) for one in whole]
        self.rewind([*ids, 0])
        return torch.stack(rows)

    @override
    def clear(self) -> None:
        self._model.reset()
        self.ids = []

    @override
    def _crop(self, surplus: int) -> bool:
        self._model.n_tokens = len(self.ids) - surplus  # the rest is dropped before the next token
        return True
