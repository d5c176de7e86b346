"""Scores options by a server that returns log-probabilities of prompts: `echo` with `logprobs` at `/completions`."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from wsap_core.seams.agent import Usage
from wsap_core.seams.model import ChooseConstraint, Finish, Message, Reply, Request
from wsap_core.seams.model_errors import BackendError, ServerFailedError
from wsap_core.untrusted import error_line

TEMPLATES = {
    "chatml": "<|im_start|>{role}\n{content}<|im_end|>\n",
    "llama3": "<|start_header_id|>{role}<|end_header_id|>\n\n{content}<|eot_id|>",
}
"""The format of a message in a prompt, by the value of the option `choose`."""


class _Given(NamedTuple):
    """A server's data about a text: its tokens, their log-probabilities and their number, then tokens and
    log-probabilities of the completion, if any (Any: unchecked JSON). The first tokens may be missing."""

    text: list[Any]
    chances: list[Any]
    size: int
    written: list[Any]
    at: list[Any]


class Scorer:
    """Scores options with one request each, after one for the prompt; `complete` posts a request."""

    def __init__(self, model: str, template: str, complete: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._model = model
        self._form = TEMPLATES[template]
        self._complete = complete

    async def unable(self) -> str:
        """Return why the server can't score; empty if it can.

        A token must have the same log-probability, within rounding, as completion and as prompt: some servers return
        them shifted by one token.
        """
        prompt = self._opened([Message("user", "Count from one to ten.")])
        try:
            said = await self._given(prompt, echo=False)
            score, _ = await self._score(prompt + said.written[-1], await self._given(prompt))
            wrong = f"the log-probability of a token is {said.at[-1]:.2f} in a completion but {score:.2f} in a prompt"
            return "" if abs(score - said.at[-1]) <= 0.1 else wrong
        except (BackendError, TypeError, ValueError, IndexError) as error:
            return f"the server returns no log-probabilities of prompts ({error_line(error, 200).rstrip('.')})"

    async def choose(self, request: Request, constraint: ChooseConstraint) -> Reply:
        """Return the drawn option; raise BackendError, such as ServerFailedError if log-probabilities are missing."""
        prompt = self._opened(request.messages)
        base = await self._given(prompt)
        found = [await self._score(prompt + option, base) for option in constraint.options]
        temperature = 1.0 if request.sampling.temperature is None else request.sampling.temperature
        index, chances = constraint.draw([score for score, _ in found], temperature, request.sampling.seed)
        asked = [base, *(given for _, given in found)]
        usage = Usage(len(asked), sum(one.size for one in asked), sum(len(one.written) for one in asked))
        return Reply(constraint.options[index], finish=Finish("stop", usage=usage, probabilities=chances))

    async def _score(self, text: str, base: _Given) -> tuple[float, _Given]:
        """Return the mean log-probability of the text's tokens after the prompt, and the server's data."""
        given = await self._given(text)
        size = given.size - base.size
        # An option whose first letters form a token with the prompt's last ones would get a wrong score.
        if size < 1 or len(given.text) <= size or given.text[:-size] != base.text:
            raise ServerFailedError("The tokens of an option can't be separated from those of the prompt.")
        chances = given.chances[-size:]
        if not all(isinstance(chance, int | float) and math.isfinite(chance) for chance in chances):
            raise ServerFailedError("The server did not return a log-probability for each token of an option.")
        return sum(chances) / size, given

    async def _given(self, text: str, *, echo: bool = True) -> _Given:
        body = {"model": self._model, "prompt": text, "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": echo}
        try:
            found = json.loads((await self._complete(json.dumps(body).encode())).decode())
            told, usage = found["choices"][0]["logprobs"], found["usage"]
            tokens, chances = list(told["tokens"]), list(told["token_logprobs"])
            size, end = int(usage["prompt_tokens"]), len(tokens) - int(usage["completion_tokens"])
            return _Given(tokens[:end], chances[:end], size, tokens[end:], chances[end:])
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise ServerFailedError("The server's completion contains no log-probabilities.") from error

    def _opened(self, messages: Sequence[Message]) -> str:
        """Return messages as a prompt that ends where the reply starts; special tokens in messages are broken up."""
        shown = [("user" if m.role == "observation" else m.role, m.text().replace("<|", "< |")) for m in messages]
        head = self._form.partition("{content}")[0].format(role="assistant")
        return "".join(self._form.format(role=role, content=text) for role, text in shown) + head
