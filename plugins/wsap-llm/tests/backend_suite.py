"""The test suite of backends over HTTP, against `llm_server`, which misbehaves on request.

Subclass `BackendSuite` in a class whose name starts with `Test`, and define how the backend is created; `ErrorSuite`
for a backend that talks to servers through the library of somebody else.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import pytest
from llm_server import DEAF, ModelServer, Refusal, Say
from llm_server.says import BAD

from wsap_check.backends import BackendTests
from wsap_core.seams.constraints import CallConstraint, FunctionDef
from wsap_core.seams.model import Backend, Draft, FunctionCall, JsonConstraint, Message, Reply, Request, Sampling
from wsap_core.seams.model_errors import (
    AuthenticationError,
    BackendError,
    BackendTimeoutError,
    BadRequestError,
    ConstraintError,
    ContextTooSmallError,
    ModelNotFoundError,
    NoServerError,
    RateLimitError,
    ServerFailedError,
)

T = TypeVar("T")

REQUEST = Request([Message("system", "Be brief."), Message("user", "Hello?")])
LOOK = FunctionDef("look", "Look", {"type": "object", "properties": {"where": {"enum": ["east", "west"]}}})
CALL = replace(REQUEST, constraint=CallConstraint([LOOK]))
UNBOUNDED = replace(REQUEST, sampling=Sampling(max_tokens=None))
SCHEMA = {"type": "object", "properties": {"action": {"const": "wait"}}, "required": ["action"]}

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


class ErrorSuite(BackendTests, ABC):
    """What a backend tells of a server that fails, with whole and with streamed replies."""

    address: ClassVar[str]
    """The address of the backend's model."""

    @abstractmethod
    def backend(self, server: ModelServer, **options: Any) -> Backend:
        """Return the backend, with options such as `stream` and `timeout`."""

    @abstractmethod
    def backend_at(self, place: str, **options: Any) -> Backend:
        """Return the backend for a server at `http://HOST:PORT`."""

    @pytest.fixture
    def make_backend(self, server: ModelServer) -> Callable[[], Backend]:
        """Return a factory of backends of a server that behaves."""
        return lambda: self.backend(server)

    @pytest.fixture
    def make_failing(self, server: ModelServer) -> Callable[[], Backend]:
        """Return a factory of backends of a server that answers with an error."""
        server.default = Say("no", status=400)
        return lambda: self.backend(server)

    async def ready(self, backend: Any) -> None:
        """Make a backend look up its model, if it can."""
        if (prepare := getattr(backend, "prepare", None)) is not None:
            await prepare()

    def using(self, backend: Backend, work: Callable[[Backend], Awaitable[T]]) -> T:
        async def main() -> T:
            try:
                async with asyncio.timeout(300):
                    return await work(backend)
            finally:
                await backend.aclose()

        return asyncio.run(main())

    def ask(self, backend: Backend, request: Request = REQUEST) -> Reply:
        return self.using(backend, lambda backend: backend.complete(request))

    @both
    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (500, ServerFailedError),
            (502, ServerFailedError),
            (429, RateLimitError),
            (400, BadRequestError),
            (401, AuthenticationError),
            (403, AuthenticationError),
            (404, ModelNotFoundError),
        ],
    )
    def test_each_status_is_an_error_of_its_class_and_nothing_is_tried_again(
        self, server: ModelServer, stream: bool, status: int, kind: type[BackendError]
    ) -> None:
        server.default = Say(status=status, error="Those are my words.", headers={"Retry-After": "7"})
        with pytest.raises(BackendError, match="Those are my words") as caught:
            self.ask(self.backend(server, stream=stream))
        assert type(caught.value) is kind
        assert getattr(caught.value, "retry_after", 7.0) == 7.0
        assert len(server.asked) == 1

    @both
    def test_nobody_at_the_address_is_told(self, nowhere: str, stream: bool) -> None:
        with pytest.raises(NoServerError):
            self.ask(self.backend_at(nowhere, stream=stream))

    @both
    def test_a_prompt_that_does_not_fit_is_told(self, server: ModelServer, stream: bool) -> None:
        with pytest.raises(ContextTooSmallError):
            self.ask(self.backend(server, stream=stream), Request([Message("user", "word " * 50_000)]))

    @both
    def test_a_reply_that_does_not_come_in_time_is_given_up(self, server: ModelServer, stream: bool) -> None:
        server.say(DEAF)
        with pytest.raises(BackendTimeoutError):
            self.ask(self.backend(server, stream=stream, timeout=0.3))

    @both
    @pytest.mark.parametrize(
        "refusal",
        [
            Refusal(400, "This response_format type is unavailable now"),
            Refusal(400, "Failed to initialize samplers: failed to parse grammar"),
            Refusal(500, "invalid JSON schema in format"),
        ],
        ids=lambda refusal: refusal.words,
    )
    def test_a_server_that_can_not_constrain_says_so(self, server: ModelServer, stream: bool, refusal: Refusal) -> None:
        server.models["qwen3:8b"] = replace(server.models["qwen3:8b"], refusal=refusal)
        assert self.ask(self.backend(server, stream=stream)).text
        with pytest.raises(ConstraintError):
            self.ask(self.backend(server, stream=stream), replace(REQUEST, constraint=JsonConstraint(SCHEMA)))


class BackendSuite(ErrorSuite, ABC):
    """The tests of a client of our own; each runs with whole and with streamed replies where both make sense."""

    broken_json: ClassVar[str]
    """A part of the error for truncated JSON."""
    too_long: ClassVar[str]
    """A part of the error for a response of more than 30,000 bytes."""
    each_piece: ClassVar[dict[str, Any]] = {}
    """The options with which each piece of a streamed reply is passed on separately."""

    @abstractmethod
    def backend(self, server: ModelServer, **options: Any) -> Backend:
        """Return the backend, with options such as `stream`, `timeout` and `max_bytes`."""

    # --- what comes back -------------------------------------------------------------------------

    @both
    def test_a_reply_comes_back_with_its_usage(self, server: ModelServer, stream: bool) -> None:
        server.say(Say("I wait. It is dark."))
        reply = self.ask(self.backend(server, stream=stream))
        assert (reply.text, reply.finish.reason) == ("I wait. It is dark.", "stop")
        # Two messages of two words and one word, and four tokens around each; a token is a word here.
        assert (reply.usage.calls, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 11, 5)
        assert reply.usage.cost is None

    def test_what_is_written_is_shown_as_it_comes(self, server: ModelServer) -> None:
        shown: list[Draft] = []
        server.say(Say("one two three", thinking="Hm."))
        backend = self.backend(server, **self.each_piece)
        reply = self.using(backend, lambda backend: backend.complete(REQUEST, shown.append))
        assert (reply.text, reply.thinking) == ("one two three", "Hm.")
        assert shown, "nothing was shown"
        assert {draft.text for draft in shown} <= {"", "one ", "one two ", "one two three"}
        assert {draft.thinking for draft in shown} <= {"", "Hm."}
        assert [len(draft.text) for draft in shown] == sorted(len(draft.text) for draft in shown)

    @both
    def test_an_empty_completion_is_an_empty_reply(self, server: ModelServer, stream: bool) -> None:
        server.say(Say(""))
        reply = self.ask(self.backend(server, stream=stream))
        assert (reply.text, reply.finish.reason, reply.usage.completion_tokens) == ("", "stop", 0)

    @both
    @pytest.mark.parametrize("style", ["plain", "bytes"])
    def test_prose_around_json_is_passed_on_as_it_is(self, server: ModelServer, stream: bool, style: Any) -> None:
        said = 'Sure! Here it is:\n```json\n{"action": "wait"}\n```\nGood luck, 你好.'
        server.say(Say(said, style=style))
        assert self.ask(self.backend(server, stream=stream)).text == said

    @both
    def test_tokens_are_estimated_where_the_server_does_not_count(self, server: ModelServer, stream: bool) -> None:
        server.say(Say("one two three", usage=False))
        usage = self.ask(self.backend(server, stream=stream)).usage
        assert usage.calls == 1
        assert usage.prompt_tokens > 0
        assert usage.completion_tokens == 3

    @both
    def test_a_reply_ten_times_too_long_is_taken_and_counted(self, server: ModelServer, stream: bool) -> None:
        server.say(Say("word " * 3000))
        reply = self.ask(self.backend(server, stream=stream), UNBOUNDED)
        assert (len(reply.text), reply.usage.completion_tokens) == (15_000, 3000)

    @both
    def test_a_call_of_a_function_comes_beside_what_was_written_with_it(
        self, server: ModelServer, stream: bool
    ) -> None:
        server.say(Say("I look east.", calls=[("look", {"where": "east"})]))
        before = Message("assistant", "On.", (FunctionCall("go", {"steps": 2}),))
        request = replace(CALL, messages=(*CALL.messages, before, Message("user", "A wall.")))
        reply = self.ask(self.backend(server, stream=stream), request)
        assert (reply.text, reply.calls) == ("I look east.", (FunctionCall("look", {"where": "east"}),))
        assert reply.finish.reason == "stop"
        assert [tool["function"]["name"] for tool in server.last["tools"]] == ["look"]
        made, result = server.last["messages"][-2:]
        (call,) = made["tool_calls"]
        given = call["function"]["arguments"]
        assert (made["content"], call["function"]["name"]) == ("On.", "go")
        assert (json.loads(given) if isinstance(given, str) else given) == {"steps": 2}
        assert (result["role"], result["content"]) == ("tool", "A wall.")

    @both
    def test_a_reply_without_the_call_that_was_asked_for_is_passed_on(self, server: ModelServer, stream: bool) -> None:
        server.say(Say("I would rather not."))
        assert self.ask(self.backend(server, stream=stream), CALL).text == "I would rather not."

    # --- misbehaviour ----------------------------------------------------------------------------

    @both
    def test_a_slow_first_token_is_waited_for(self, server: ModelServer, stream: bool) -> None:
        server.say(Say("At last.", wait=True))

        async def later(backend: Backend) -> Reply:
            await self.ready(backend)
            asked = asyncio.create_task(backend.complete(REQUEST))
            await asyncio.to_thread(server.await_requests, 1)
            assert not asked.done()
            server.release()
            return await asked

        assert self.using(self.backend(server, stream=stream), later).text == "At last."

    @pytest.mark.parametrize(
        ("say", "stream"),
        [
            (Say("one two three", cut=0), False),
            (Say("one two three", cut=0), True),
            (Say("one two three", cut=2), True),
            (Say("one two three", finish=None, done=False), True),
        ],
    )
    def test_a_connection_that_drops_in_mid_reply_is_told(self, server: ModelServer, say: Say, stream: bool) -> None:
        server.say(say)
        with pytest.raises(ServerFailedError, match=f"a reply of {self.address}"):
            self.ask(self.backend(server, stream=stream))

    @both
    def test_json_that_stops_in_its_middle_is_told(self, server: ModelServer, stream: bool) -> None:
        server.say(Say("one two three", half=True))
        with pytest.raises(ServerFailedError, match=self.broken_json):
            self.ask(self.backend(server, stream=stream))

    @both
    def test_bytes_that_are_not_utf8_are_told(self, server: ModelServer, stream: bool) -> None:
        server.say(Say(f"one {BAD} three"))
        with pytest.raises(ServerFailedError, match="not UTF-8"):
            self.ask(self.backend(server, stream=stream))

    @both
    def test_a_reply_that_never_ends_is_left_there(self, server: ModelServer, stream: bool) -> None:
        server.say(Say("word " * 20_000))
        with pytest.raises(ServerFailedError, match=self.too_long):
            self.ask(self.backend(server, stream=stream, max_bytes=30_000), UNBOUNDED)

    def test_a_redirect_is_refused_and_nothing_is_sent_there(self, server: ModelServer) -> None:
        elsewhere = server.address.replace("127.0.0.1", "localhost")
        server.say(Say(status=307, headers={"Location": f"{elsewhere}/other"}))
        with pytest.raises(BadRequestError, match=r"redirects to another address \(http://localhost"):
            self.ask(self.backend(server))
        assert not [r for r in server.requests if r.path == "/other"]

    @both
    def test_an_error_after_the_reply_has_begun_is_told(self, server: ModelServer, stream: bool) -> None:
        server.say(Say("one two three", error_within="CUDA out of memory"))
        with pytest.raises(ServerFailedError, match="CUDA out of memory"):
            self.ask(self.backend(server, stream=stream))

    @both
    @pytest.mark.parametrize(
        ("headers", "wait"),
        [
            ({}, None),
            ({"Retry-After": "7"}, 7.0),
            ({"Retry-After": "1.5"}, 1.5),
            ({"Date": "Fri, 20 Jun 2025 10:00:00 GMT", "Retry-After": "Fri, 20 Jun 2025 10:00:30 GMT"}, 30.0),
            ({"Date": "Fri, 20 Jun 2025 10:00:00 GMT", "Retry-After": "Fri, 20 Jun 2025 09:00:00 GMT"}, 0.0),
            ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
            ({"Retry-After": "soon"}, None),
            ({"Retry-After": "-5"}, None),
            ({"Retry-After": "inf"}, None),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_too_many_requests_says_how_long_to_wait(
        self, server: ModelServer, stream: bool, headers: dict[str, str], wait: float | None
    ) -> None:
        server.say(Say(status=429, error="Slow down.", headers=headers))
        with pytest.raises(RateLimitError, match="Slow down") as caught:
            self.ask(self.backend(server, stream=stream))
        assert caught.value.retry_after == wait

    @both
    def test_words_of_a_server_are_made_harmless(self, server: ModelServer, stream: bool) -> None:
        server.say(Say(status=500, error="\x1b[2J\u202eboom\nbang " + "x" * 5000))
        with pytest.raises(ServerFailedError) as caught:
            self.ask(self.backend(server, stream=stream))
        assert "\x1b" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500

    # --- life ------------------------------------------------------------------------------------

    def test_cancelling_ends_a_reply_at_the_server_and_leaves_the_backend_usable(self, server: ModelServer) -> None:
        async def leave_early(backend: Backend) -> str:
            begun: asyncio.Future[Draft] = asyncio.get_running_loop().create_future()

            def show(draft: Draft) -> None:
                if not begun.done():
                    begun.set_result(draft)

            asked = asyncio.ensure_future(backend.complete(UNBOUNDED, show))
            assert (await begun).text.startswith("word ")
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await asyncio.to_thread(server.await_leaving)
            return (await backend.complete(REQUEST)).text

        server.say(Say("word " * 200_000))
        assert self.using(self.backend(server, stream=True), leave_early) == "Hello there."

    def test_a_closed_backend_says_so(self, server: ModelServer) -> None:
        async def closed(backend: Backend) -> None:
            await backend.complete(REQUEST)
            await backend.aclose()
            await backend.aclose()
            await backend.complete(REQUEST)

        with pytest.raises(BadRequestError, match="closed"):
            self.using(self.backend(server), closed)
