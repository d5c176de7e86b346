"""The options of the backend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from wsap_core.errors import ConfigError
from wsap_core.seams.model_errors import BadRequestError
from wsap_core.specs import OptionDef

EngineName = Literal["llguidance", "outlines-core"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
VLLM = "vllm:"
"""The prefix of the names of models that vLLM runs."""


@dataclass(frozen=True)
class Options:
    """The options of the backend."""

    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, `mps`; `auto` is the first available of cuda, mps and cpu."""
    dtype: Dtype = "auto"
    """Number format of computations. `auto` is that of the stored weights, or on a CPU the faster of `bfloat16` and
    `float32`. Recorded with the run, because rounding can affect close choices."""
    engine: EngineName = "llguidance"
    """Computes the allowed tokens; see `wsap_outlines.guiding.guides`."""
    context: int | None = None
    """A smaller context window than the model's, in tokens."""
    threads: int | None = None
    """Threads of torch on a CPU; torch's default when None."""
    think: int | None = None
    """Most tokens of thinking before a constrained reply; half of `max_tokens` when None."""

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Options:
        """Return the options in a configuration; `ConfigError` if one is invalid."""
        given = {name: config[name] for name in cls.__dataclass_fields__ if config.get(name) is not None}
        for name, choices in (("engine", get_args(EngineName)), ("dtype", get_args(Dtype))):
            if name in given and given[name] not in choices:
                raise ConfigError(f"The option {name} must be one of {', '.join(choices)}, not {given[name]!r}.")
        for name in ("context", "threads", "think"):
            try:
                if name in given:
                    given[name] = int(given[name])
                    assert given[name] > 0
            except (TypeError, ValueError, AssertionError) as error:
                raise ConfigError(f"The option {name} must be a whole number above 0, not {given[name]!r}.") from error
        return cls(**given)


DECLARED = (
    OptionDef("model", "A model on the Hugging Face hub, a folder, a GGUF file, or smollm2.", names="path"),
    *(OptionDef(option.name, "see `Options`") for option in fields(Options)),
)


def need_model(config: Mapping[str, Any]) -> str:
    """Return the model's name or folder; `BadRequestError` if there is none."""
    model = config.get("model")
    if not isinstance(model, str) or not model.removeprefix(VLLM):
        raise BadRequestError("outlines/ requires a model: outlines/Qwen/Qwen3-8B, or a folder, outlines/./my-model.")
    return model


def read_context(model: str) -> int | None:
    """Return a local model's context window in tokens without loading it, or None if unknown."""
    try:
        data = json.loads((Path(model).expanduser() / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return context_of(data) if isinstance(data, dict) else None


def context_of(data: Mapping[str, Any]) -> int | None:
    """Return the context window in a model's configuration."""
    for part in (data, data.get("text_config")):
        if isinstance(part, Mapping):
            for key in ("max_position_embeddings", "n_positions", "max_seq_len"):
                if isinstance(part.get(key), int):
                    return int(part[key])
    return None
