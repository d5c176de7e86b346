"""`inspect/PROVIDER/MODEL`: the models of Inspect's providers, with its retries, limits and cache.

Inside an evaluation of Inspect its own models are used, as it was told to call them; see `InEvaluation`.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wsap_core.errors import ConfigError, MissingServiceError
from wsap_core.installing import install_line
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import (
    DEFAULT_SAMPLING,
    Abilities,
    CallConstraint,
    Finish,
    FinishReason,
    ImagePart,
    Message,
    OnText,
    Reply,
    Request,
)
from wsap_core.seams.model_errors import BackendError, BudgetReachedError, ContextTooSmallError
from wsap_core.untrusted import single_line
from wsap_llm.kit import estimate_request, linked, option_defs, read_options, said_and_called

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput
    from inspect_ai.tool import ToolInfo

# Any, in this module: Inspect is not installed everywhere, and where it is not, the same is checked.

_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}


@dataclass
class InEvaluation:
    """The evaluation of Inspect that a game is played for."""

    models: Mapping[str, Model]
    """Address -> the evaluation's own model."""
    before_request: Callable[[], Awaitable[None]]
    """Awaited before each request."""
    ended: BaseException | None = None
    """The error by which Inspect ended the sample, such as a limit; whoever plays raises it again."""


IN_EVALUATION: ContextVar[InEvaluation | None] = ContextVar("wsap-inspect", default=None)
"""The evaluation that this task plays for, if any."""


@dataclass(frozen=True)
class InspectOptions:
    """How Inspect's models are called."""

    calls: bool = False
    """Whether to use function calls (tool calling), which not every model has."""
    images: bool | None = None
    """Whether the model accepts images; None if it is unknown."""
    context: int | None = None
    """The model's context in tokens, if known."""
    base_url: str | None = field(default=None, metadata={"names": "address"})
    """The provider's address, if it is not the usual one."""
    args: Mapping[str, Any] = field(default_factory=dict, metadata={"names": "address"})
    """Arguments of the provider, as for Inspect's option -M."""


DECLARED = option_defs(InspectOptions)


class InspectBackend:
    """A model of any of Inspect's providers, by Inspect's name for it."""

    def __init__(self, name: str, options: InspectOptions | None = None) -> None:
        self.options = own = options or InspectOptions()
        self.model = f"inspect/{name}"
        """The address."""
        self.abilities = Abilities(calls=own.calls, images=own.images, context=own.context, thinking=True)
        self._name = name
        self._own: Any = None

    async def prepare(self) -> None:
        """Create the model; ConfigError if it has no provider, or its provider's package or key is missing."""
        if self._model_in_evaluation() is not None or self._own is not None:
            return
        api: Any = await asyncio.to_thread(importlib.import_module, "inspect_ai.model")
        try:
            self._own = api.get_model(
                self._name, base_url=self.options.base_url, memoize=False, **dict(self.options.args)
            )
        except Exception as error:
            raise ConfigError(f"Inspect has no model {self._name!r}: {_words(error)}") from error

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply. Inspect retries by itself, so that a failure is final: a `BackendError`."""
        from inspect_ai.util import LimitExceededError

        await self.prepare()
        around = IN_EVALUATION.get()
        if around is not None:
            await around.before_request()
        model = self._model_in_evaluation() or self._own
        own = model is self._own
        try:
            output: ModelOutput = await model.generate(
                list(_messages(request)),
                tools=_tools(request),
                tool_choice="any" if isinstance(request.constraint, CallConstraint) else None,
                config=_config(request, all_of_it=own),
            )
        except LimitExceededError as error:
            if around is not None:
                around.ended = error
            raise BudgetReachedError(f"Inspect ended the sample: {_words(error)}") from error
        except Exception as error:
            raise BackendError(f"{self.model} did not answer: {_words(error)}") from error
        return self._reply(request, output)

    async def aclose(self) -> None:
        """Close the model's connections; those of an evaluation are Inspect's own."""
        if self._own is not None:
            await self._own.api.aclose()

    def _model_in_evaluation(self) -> Model | None:
        around = IN_EVALUATION.get()
        return None if around is None else around.models.get(self.model)

    def _reply(self, request: Request, output: ModelOutput) -> Reply:
        reason = output.stop_reason
        if output.error:
            raise BackendError(f"{self.model} did not answer: {_words(output.error)}")
        if reason == "model_length" and not output.completion:
            raise ContextTooSmallError(f"The prompt exceeds the context of {self.model}.")
        given = [(call.function, call.arguments) for call in (output.message.tool_calls or ())]
        text, calls = said_and_called(request, output.completion, given)
        content = output.message.content
        thinking = "" if isinstance(content, str) else "\n".join(p.reasoning for p in content if p.type == "reasoning")
        finish = Finish(_REASONS.get(reason, "unknown"), usage=_usage(request, output), served=output.model)
        return Reply(text, thinking, finish, calls)


def _usage(request: Request, output: ModelOutput) -> Usage:
    told = output.usage
    if told is None:
        return Usage(1, estimate_request(request), estimate_tokens(output.completion), None)
    read = told.input_tokens + (told.input_tokens_cache_read or 0) + (told.input_tokens_cache_write or 0)
    return Usage(1, read, told.output_tokens, told.total_cost)


def _config(request: Request, *, all_of_it: bool) -> GenerateConfig:
    """Return how to sample; in an evaluation without what nobody asked for, so that Inspect's own settings hold."""
    from inspect_ai.model import GenerateConfig

    given = request.sampling
    names = ("max_tokens", "temperature", "top_p", "seed")
    asked = {
        name: value
        for name in names
        if (value := getattr(given, name)) is not None and (all_of_it or value != getattr(DEFAULT_SAMPLING, name))
    }
    if not all_of_it:
        asked.pop("seed", None)  # WSAP derives it; not every provider takes one
    return GenerateConfig(**asked, stop_seqs=list(request.stop) or None)


def _tools(request: Request) -> list[ToolInfo]:
    from inspect_ai.tool import ToolInfo, ToolParams

    if not isinstance(request.constraint, CallConstraint):
        return []
    return [
        ToolInfo(
            name=each.name,
            description=each.description,
            parameters=ToolParams.model_validate({"type": "object", **each.parameters}),
        )
        for each in request.constraint.functions
    ]


def _messages(request: Request) -> list[ChatMessage]:
    from inspect_ai import model as api
    from inspect_ai.tool import ToolCall

    found: list[ChatMessage] = []
    for message, call, number in linked(request.messages):
        if message.role == "system":
            found.append(api.ChatMessageSystem(content=message.text()))
        elif call is not None:
            said = Message("assistant", message.content).text()
            asked = [ToolCall(id=number, function=call.name, arguments=dict(call.arguments))]  # type: ignore[arg-type]
            found.append(api.ChatMessageAssistant(content=said, tool_calls=asked))
        elif message.role == "assistant":
            found.append(api.ChatMessageAssistant(content=message.text()))
        elif number:
            found.append(api.ChatMessageTool(content=message.text(), tool_call_id=number))
        else:
            found.append(api.ChatMessageUser(content=_content(message)))
    if request.prefill:
        found.append(api.ChatMessageAssistant(content=request.prefill))
    return found


def _content(message: Message) -> Any:
    from inspect_ai.model import ContentImage, ContentText

    if isinstance(message.content, str):
        return message.content
    return [
        ContentImage(image=f"data:{part.media_type};base64,{part.base64}")
        if isinstance(part, ImagePart)
        else ContentText(text=part.text)
        for part in message.content
    ]


def _words(error: object) -> str:
    """Return an error of Inspect in one line; some are only in their attribute `message`, with marks of colour."""
    text = single_line(str(getattr(error, "message", None) or error or type(error).__name__))
    for mark in ("[bold]", "[/bold]", "[blue]", "[/blue]"):
        text = text.replace(mark, "")
    return text[:300]


def not_installed() -> MissingServiceError:
    """Return the error that says how to install Inspect."""
    return MissingServiceError(f"Inspect is not installed; install it with: {install_line('wsap-eval[inspect]')}")


def create(context: Context) -> InspectBackend:
    """Return the backend of `inspect/PROVIDER/MODEL`. Raises ConfigError for an unknown option or a missing name, and
    MissingServiceError if Inspect is not installed."""
    name = str(context.config.get("model") or "")
    options = read_options(InspectOptions, context.config, "inspect")
    if "/" not in name.strip("/"):
        raise ConfigError("Missing model name; expected inspect/PROVIDER/MODEL, as Inspect names it.")
    if importlib.util.find_spec("inspect_ai") is None:
        raise not_installed()
    return InspectBackend(name, options)
