"""What servers that speak OpenAI's protocol do differently, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Regex = Literal["structured_outputs", "guided_regex"]
"""How a regular expression is asked for: vLLM since 0.11, and before."""

Prefill = Literal["trailing", "continue_final_message"]
"""How the assistant's turn is begun: a last message of the assistant; the same, with vLLM's flags."""

Thinking = Literal["enable_thinking", "reasoning_effort"]
"""How thinking is switched: by an argument of the chat template (Qwen3 and others), or OpenAI's effort."""


@dataclass(frozen=True)
class Dialect:
    """How one kind of server wants what the protocol leaves open; None for what it does not take."""

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    strict_schema: bool = True
    """Whether the server is told that a JSON Schema has to be kept, and is not advice."""
    subset: bool = False
    """Whether it then takes only OpenAI's subset of JSON Schema (`wsap_llm.strict_schema`)."""
    regex: Regex | None = None
    prefill: Prefill | None = None
    thinking: Thinking | None = None
    repeat_penalty: Literal["repetition_penalty", "repeat_penalty"] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are always sent (Any: JSON)."""


DIALECTS: Mapping[str, Dialect] = {
    "generic": Dialect(),
    "openai": Dialect(max_tokens="max_completion_tokens", subset=True, thinking="reasoning_effort"),
    "vllm": Dialect(
        regex="structured_outputs",
        prefill="continue_final_message",
        thinking="enable_thinking",
        repeat_penalty="repetition_penalty",
    ),
    "llama.cpp": Dialect(prefill="trailing", thinking="enable_thinking", repeat_penalty="repeat_penalty"),
}
"""By the name that the option `server` takes."""

OPENAI_HOSTS = ("api.openai.com", "openai.azure.com")
"""Where OpenAI's own models answer; regions and customers have names before these."""


def dialect_name(host: str) -> str:
    """Return the dialect that is spoken at a host unless an option says otherwise."""
    return "openai" if any(host == name or host.endswith(f".{name}") for name in OPENAI_HOSTS) else "generic"
