"""Whose fault it is that there is no usable reply, by status, code and finish reason, with the source of each entry.

A fault of the `model` is its reply, which can't be used: it is asked again, then the decision is forced. A fault of the
`provider` is a failed request, which is repeated. A fault of the `request` is repeated by nobody: the key, the name of
the model, the credit or the request itself is wrong. The status, a body with status 200 and a stream are treated alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from wsap_core.seams.model import FinishReason

Whose = Literal["model", "provider", "request"]

OPENAI = "https://platform.openai.com/docs/api-reference/chat/object"
OPENAI_ERRORS = "https://platform.openai.com/docs/guides/error-codes"
AZURE = "https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter"
OPENROUTER = "https://openrouter.ai/docs/api/errors"
DEEPSEEK = "https://api-docs.deepseek.com/api/create-chat-completion"
MISTRAL = "https://docs.mistral.ai/api"
ZAI = "https://docs.z.ai/api-reference/llm/chat-completion"
ALIBABA = "https://help.aliyun.com/zh/model-studio/error-code"
GROQ = "https://console.groq.com/docs/errors"
GEMINI = "https://ai.google.dev/api/generate-content#FinishReason"
ANTHROPIC = "https://docs.anthropic.com/en/api/handling-stop-reasons"
VLLM = "https://github.com/vllm-project/vllm/blob/main/vllm/v1/engine/__init__.py"
TGI = "https://huggingface.co/docs/text-generation-inference/basic_tutorials/consuming_tgi"
LLAMA_CPP = "https://github.com/ggml-org/llama.cpp/blob/master/common/chat.cpp"
OLLAMA = "https://github.com/ollama/ollama/blob/main/llm/server.go"
HTTP = "https://www.rfc-editor.org/rfc/rfc9110#section-15"


@dataclass(frozen=True)
class Fault:
    """Whose fault something is."""

    whose: Whose
    source: str
    """The page that describes it."""
    reason: FinishReason = "unknown"
    """How the model's reply ended, if it is the model's."""
    status: int = 500
    """The status that a failed request would have, if it is the provider's."""


def _model(reason: FinishReason, source: str) -> Fault:
    return Fault("model", source, reason)


def _provider(source: str, status: int = 500) -> Fault:
    return Fault("provider", source, status=status)


FINISH: Mapping[str, Fault] = {
    "stop": _model("stop", OPENAI),
    "tool_calls": _model("stop", OPENAI),
    "function_call": _model("stop", OPENAI),
    "eos": _model("stop", TGI),
    "eos_token": _model("stop", TGI),
    "end_turn": _model("stop", ANTHROPIC),
    "tool_use": _model("stop", ANTHROPIC),
    "stop_sequence": _model("stop_sequence", ANTHROPIC),
    "length": _model("length", OPENAI),
    "max_tokens": _model("length", ANTHROPIC),
    "model_length": _model("length", MISTRAL),
    "model_context_window_exceeded": _model("length", ZAI),
    "content_filter": _model("content_filter", OPENAI),
    "refusal": _model("content_filter", ANTHROPIC),
    "sensitive": _model("content_filter", ZAI),
    "safety": _model("content_filter", GEMINI),
    "recitation": _model("content_filter", GEMINI),
    "blocklist": _model("content_filter", GEMINI),
    "prohibited_content": _model("content_filter", GEMINI),
    "spii": _model("content_filter", GEMINI),
    "malformed_function_call": _model("invalid", GEMINI),
    "error": _provider(OPENROUTER),
    "network_error": _provider(ZAI),
    "insufficient_system_resource": _provider(DEEPSEEK, 503),
    "abort": _provider(VLLM),
}
"""By finish reason, in lower case. A reply with another one is taken as it is."""

CODES: Mapping[str, Fault] = {
    "json_validate_failed": _model("invalid", GROQ),
    "tool_use_failed": _model("invalid", GROQ),
    "content_filter": _model("content_filter", AZURE),
    "content_policy_violation": _model("content_filter", OPENAI_ERRORS),
    "data_inspection_failed": _model("content_filter", ALIBABA),
    "datainspectionfailed": _model("content_filter", ALIBABA),
    "1301": _model("content_filter", ZAI),
    "rate_limit_exceeded": _provider(OPENAI_ERRORS, 429),
    "insufficient_quota": Fault("request", OPENAI_ERRORS, status=402),
    "billing_hard_limit_reached": Fault("request", OPENAI_ERRORS, status=402),
}
"""By the code or type of an error, in lower case, unless its status is 500 or more."""

WORDS: tuple[tuple[re.Pattern[str], Fault], ...] = (
    (re.compile("content exists risk", re.IGNORECASE), _model("content_filter", DEEPSEEK)),
    (re.compile("input was flagged", re.IGNORECASE), _model("content_filter", OPENROUTER)),
    (re.compile("credit balance", re.IGNORECASE), Fault("request", ANTHROPIC, status=402)),
)
"""By the words of an error without such a code, unless its status is 500 or more."""

SERVER_WORDS: tuple[tuple[re.Pattern[str], Fault], ...] = (
    # Its parser of a chat format fails, for instance where the limit of tokens ends a reply within a character.
    (re.compile("model produced output that does not match", re.IGNORECASE), _model("invalid", LLAMA_CPP)),
)
"""By the words of an error whose status is 500 or more; the same request would fail again."""

STATUSES: Mapping[int, Fault] = {
    400: Fault("request", HTTP, status=400),
    401: Fault("request", OPENAI_ERRORS, status=401),
    402: Fault("request", OPENROUTER, status=402),
    403: Fault("request", OPENAI_ERRORS, status=403),
    404: Fault("request", OPENAI_ERRORS, status=404),
    408: _provider(OPENROUTER, 408),
    409: _provider(HTTP, 409),
    413: Fault("request", HTTP, status=413),
    422: Fault("request", MISTRAL, status=422),
    425: _provider(HTTP, 425),
    429: _provider(OPENAI_ERRORS, 429),
}
"""By status; below 500 a status that is not here is the request's, from 500 on the provider's."""


def of_finish(reason: str) -> Fault | None:
    """Return whose a reply with a finish reason is; None if the reason is unknown. Gateways add words to it, as in
    `content_filter: RECITATION`."""
    word = reason.strip().lower()
    return FINISH.get(word) or FINISH.get(word.partition(":")[0])


def of_code(status: int, code: str, words: str) -> Fault | None:
    """Return whose fault an error is by its code, its type (`code` may hold several) and its words; None if they do not
    say."""
    if status >= 500:
        return _by_words(SERVER_WORDS, words)
    known = next((CODES[each] for each in code.lower().split() if each in CODES), None)
    return known or _by_words(WORDS, words)


def _by_words(known: Iterable[tuple[re.Pattern[str], Fault]], words: str) -> Fault | None:
    return next((fault for pattern, fault in known if pattern.search(words)), None)


def of_status(status: int) -> Fault:
    """Return whose fault an error is by its status alone."""
    known = STATUSES.get(status)
    if known is not None:
        return known
    return _provider(HTTP, status) if status >= 500 else Fault("request", HTTP, status=status)
