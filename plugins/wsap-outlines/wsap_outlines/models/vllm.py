"""The backend `outlines/vllm:<model>`: vLLM in this process, without a server.

Never run so far: written against the documentation of vLLM 0.12 and later, `AsyncLLM` with `AsyncEngineArgs`, deltas by
`RequestOutputKind.DELTA`, constraints by `StructuredOutputsParams` (earlier `guided_...`). vLLM runs on Linux with a
GPU; it batches concurrent requests, and its prefix cache reuses the computation of known prefixes.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from contextlib import aclosing
from typing import Any

from wsap_core.installing import install_line
from wsap_core.seams.agent import Usage
from wsap_core.seams.constraints import WrittenConstraint
from wsap_core.seams.model import Abilities, Constraint, Finish, FinishReason, JsonConstraint, OnText, Reply, Request
from wsap_core.seams.model_errors import BackendError, BadRequestError, ConstraintError, ContextTooSmallError
from wsap_core.untrusted import error_line
from wsap_llm.kit import ThinkSplitter
from wsap_outlines.guiding.guides import pattern_of
from wsap_outlines.options import Options, read_context
from wsap_outlines.prompts import Transcript, opened, render

_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length"}


class VllmBackend:
    """A model (a folder, or a name on the Hugging Face hub) that vLLM runs in this process, loaded on its first use.
    Only the options `context` and `dtype` apply."""

    def __init__(self, name: str, options: Options | None = None) -> None:
        self._name = name
        self._options = options or Options()
        self._engine: Any = None
        self._tokenizer: Any = None
        self._loading = asyncio.Lock()
        self._numbers = itertools.count(1)
        self._transcript = Transcript()
        self._context = self._options.context or read_context(name)

    @property
    def model(self) -> str:
        """The full address."""
        return f"outlines/vllm:{self._name}"

    @property
    def abilities(self) -> Abilities:
        """Its abilities; resuming is by vLLM's prefix cache, in whole blocks of tokens."""
        return Abilities(json_schema=True, regex=True, prefill=True, resume=True, thinking=True, context=self._context)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply; see `Backend`."""
        await self._load()
        prompt = render(self._tokenizer, request)
        ids = self._transcript.tokens(self._tokenizer, prompt)
        params = self._params(request, len(ids), thinking=opened(prompt))
        splitter = ThinkSplitter(opened=opened(prompt) and not request.prefill)
        reason: FinishReason = "unknown"
        stop: str | None = None
        count = 0
        outputs = self._engine.generate(
            request_id=f"wsap-{next(self._numbers)}", prompt={"prompt_token_ids": ids}, sampling_params=params
        )
        try:
            async with aclosing(outputs):
                async for output in outputs:
                    for part in output.outputs:
                        count += len(part.token_ids)
                        splitter.feed(part.text)
                        if on_text is not None:
                            on_text(splitter.draft)
                        if part.finish_reason is not None:
                            reason = _REASONS.get(part.finish_reason, "unknown")
                            # A number here is a token that ended the reply, not a stop text.
                            stop = part.stop_reason if isinstance(part.stop_reason, str) else None
        except ValueError as error:
            raise _refusal(request.constraint, error) from error
        except RuntimeError as error:
            raise BackendError(f"{self.model} failed: {error_line(error, kind=True)}") from error
        draft = splitter.close()
        ended = Finish("stop_sequence" if stop else reason, stop, Usage(1, len(ids), count, 0.0))
        return Reply(draft.text, draft.thinking, ended)

    async def aclose(self) -> None:
        """Stop the engine and release its memory."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.shutdown)

    async def _load(self) -> None:
        async with self._loading:
            if self._engine is not None:
                return
            try:
                from vllm.engine.arg_utils import AsyncEngineArgs  # deferred for weight
                from vllm.v1.engine.async_llm import AsyncLLM
            except ImportError as error:
                raise BackendError(
                    f"{self.model} requires vLLM, which runs on Linux with a GPU: "
                    f"`{install_line('wsap-outlines[vllm]')}`, or omit `vllm:` to use transformers. "
                    f"(Missing: {error.name}.)"
                ) from error
            more = {"max_model_len": self._options.context} if self._options.context else {}
            try:
                # In the event loop's thread: the engine binds its tasks to the running loop.
                self._engine = AsyncLLM.from_engine_args(
                    AsyncEngineArgs(model=self._name, dtype=self._options.dtype, enable_prefix_caching=True, **more)
                )
                found = self._engine.get_tokenizer()
                self._tokenizer = await found if inspect.isawaitable(found) else found
            except (ValueError, OSError, RuntimeError) as error:
                raise BackendError(f"{self.model} can't be started: {error_line(error)}") from error
            config = getattr(self._engine, "model_config", None)
            self._context = getattr(config, "max_model_len", None) or self._context

    def _params(self, request: Request, prompt: int, *, thinking: bool) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = request.sampling
        if self._context is not None and prompt + (sampling.max_tokens or 1) > self._context:
            raise ContextTooSmallError(
                f"{self.model} has a context of {self._context} tokens; the prompt has {prompt} and the reply may "
                f"have {sampling.max_tokens or 1}. Shorten the prompt, or limit the reply."
            )
        given = {
            "max_tokens": sampling.max_tokens or (self._context - prompt if self._context else None),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "repetition_penalty": sampling.repeat_penalty,
            "seed": sampling.seed,
        }
        if request.constraint is not None:
            if thinking:
                raise ConstraintError(
                    f"{self.model} can't constrain a reply that starts with thinking; turn thinking off."
                )
            given["structured_outputs"] = _structured(request.constraint)
        return SamplingParams(
            **{key: value for key, value in given.items() if value is not None},
            stop=list(request.stop) or None,
            output_kind=RequestOutputKind.DELTA,
        )


def _structured(constraint: Constraint) -> Any:
    from vllm.sampling_params import StructuredOutputsParams

    if not isinstance(constraint, WrittenConstraint):
        raise ConstraintError("vLLM does not support this constraint.")
    pattern = pattern_of(constraint)
    if pattern is not None:
        return StructuredOutputsParams(regex=pattern)
    assert isinstance(constraint, JsonConstraint)
    return StructuredOutputsParams(json=json.dumps(dict(constraint.schema)))


def _refusal(constraint: Constraint | None, error: ValueError) -> BadRequestError:
    kind = ConstraintError if constraint is not None else BadRequestError
    return kind(f"vLLM refused the request: {error_line(error)}")
