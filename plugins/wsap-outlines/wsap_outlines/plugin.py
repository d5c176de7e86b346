"""The hooks of this package; neither torch nor transformers is imported here."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import BackendSpec


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Register the backend."""
    return [
        BackendSpec(
            "outlines",
            "Models in process (transformers, or vLLM as outlines/vllm:MODEL), with replies constrained by token.",
            "wsap_outlines.create:create",
            abilities=("json_schema", "regex", "choose", "prefill", "resume"),
            options="wsap_outlines.options:DECLARED",
        )
    ]
