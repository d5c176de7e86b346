"""`openai/<model>` against a real local server that speaks the protocol, and misbehaves on request."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import pytest
from backend_suite import BackendSuite
from llm_server import DEAF, ModelServer, Say

from wsap_core.errors import ConfigError, UsageError
from wsap_core.seams.constraints import CallConstraint, FunctionDef
from wsap_core.seams.model import (
    Draft,
    ImagePart,
    JsonConstraint,
    Message,
    RegexConstraint,
    Reply,
    Request,
    Sampling,
    TextPart,
)
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
from wsap_llm.backends.openai.backend import OpenAIBackend
from wsap_llm.backends.openai.dialects import DIALECTS
from wsap_llm.backends.openai.options import OpenAIOptions, options_of

T = TypeVar("T")

REQUEST = Request([Message("system", "Be brief."), Message("user", "Hello?")])
SCHEMA = {"type": "object", "properties": {"action": {"const": "wait"}}, "required": ["action"]}

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def options(server: ModelServer, /, **more: Any) -> OpenAIOptions:
    return OpenAIOptions(base_url=server.base_url, **more)


def using(chosen: OpenAIOptions, work: Callable[[OpenAIBackend], Awaitable[T]], name: str = "qwen3:8b") -> T:
    async def main() -> T:
        backend = OpenAIBackend(name, chosen)
        try:
            async with asyncio.timeout(30):
                return await work(backend)
        finally:
            await backend.aclose()

    return asyncio.run(main())


def ask(chosen: OpenAIOptions, request: Request = REQUEST, name: str = "qwen3:8b") -> Reply:
    return using(chosen, lambda backend: backend.complete(request), name)


class TestOpenAI(BackendSuite):
    """The common tests of backends, in the dialect of a server that nothing is known about."""

    dialect: ClassVar[str] = "generic"
    address = "openai/qwen3:8b"
    broken_json = "broken JSON"
    too_long = "more than 30000 bytes"
    each_piece: ClassVar[dict[str, Any]] = {"gather": 0.0}

    def backend(self, server: ModelServer, **more: Any) -> OpenAIBackend:
        return OpenAIBackend("qwen3:8b", options(server, server=self.dialect, **more))

    def backend_at(self, place: str, **more: Any) -> OpenAIBackend:
        return OpenAIBackend("qwen3:8b", OpenAIOptions(base_url=f"{place}/v1", server=self.dialect, **more))


class TestVLLM(TestOpenAI):
    """The common tests, in the dialect of vLLM."""

    dialect = "vllm"


class TestLlamaCpp(TestOpenAI):
    """The common tests, in the dialect of llama.cpp's server."""

    dialect = "llama.cpp"


class TestOpenAIItself(TestOpenAI):
    """The common tests, in the dialect of OpenAI's own servers."""

    dialect = "openai"


def test_every_dialect_has_passed_the_common_tests() -> None:
    assert {TestOpenAI.dialect, *(each.dialect for each in TestOpenAI.__subclasses__())} == set(DIALECTS)


# --- requests ------------------------------------------------------------------------------------


def test_pieces_are_gathered_after_the_first_and_none_is_lost(server: ModelServer) -> None:
    server.say(Say("one two three " * 100, thinking="Let me see."))
    request = replace(REQUEST, sampling=Sampling(max_tokens=None))

    shown: list[Draft] = []
    reply = using(options(server, gather=0.01), lambda backend: backend.complete(request, shown.append))
    assert (reply.text, reply.thinking) == ("one two three " * 100, "Let me see.")
    assert shown[-1] == Draft(reply.text, reply.thinking) or len(shown[-1].text) < len(reply.text)
    assert all(reply.text.startswith(draft.text) for draft in shown)
    assert 0 < len(shown) < 300
    assert reply.usage.completion_tokens == 303


def test_replies_are_streamed_while_they_are_shown_except_calls_unless_chosen(server: ModelServer) -> None:
    call = replace(REQUEST, constraint=CallConstraint([FunctionDef("wait", "Wait", {"type": "object"})]))
    for chosen, request, watched, streamed in (
        (None, REQUEST, True, True),
        (None, REQUEST, False, False),
        (None, call, True, False),
        (False, REQUEST, True, False),
        (True, call, False, True),
    ):
        shown: list[Draft] = []
        on_text = shown.append if watched else None
        using(options(server, stream=chosen), partial(OpenAIBackend.complete, request=request, on_text=on_text))
        assert server.last.get("stream", False) is streamed
        assert bool(shown) is (watched and streamed)


def test_reply_after_reply_is_whole_though_reading_was_paused(server: ModelServer) -> None:
    async def twice(backend: OpenAIBackend) -> list[str]:
        return [(await backend.complete(REQUEST)).text for _ in range(3)]

    server.default = Say("word " * 50, style="comments")
    assert using(options(server, stream=True, gather=0.001), twice) == ["word " * 50] * 3


@both
def test_what_was_asked_is_what_is_sent(server: ModelServer, stream: bool) -> None:
    sampling = Sampling(max_tokens=50, temperature=0.1, top_p=0.5, seed=7)
    ask(options(server, stream=stream), replace(REQUEST, sampling=sampling, stop=("END", "\n\n")))
    expected = {
        "model": "qwen3:8b",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}],
        "max_tokens": 50,
        "temperature": 0.1,
        "top_p": 0.5,
        "seed": 7,
        "stop": ["END", "\n\n"],
    }
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    assert server.last == (expected | streamed if stream else expected)


def test_one_request_can_ask_to_be_streamed(server: ModelServer) -> None:
    ask(options(server), replace(REQUEST, options={"openai": {"stream": True, "logit_bias": {"5": 1}}}))
    assert server.last["stream"] is True
    assert server.last["logit_bias"] == {"5": 1}


def test_options_can_not_replace_what_the_request_says(server: ModelServer) -> None:
    with pytest.raises(ConfigError, match="'messages'"):
        ask(options(server), replace(REQUEST, options={"openai": {"messages": []}}))
    assert server.requests == []


def test_a_schema_is_sent_as_the_format_of_the_reply(server: ModelServer) -> None:
    ask(options(server), replace(REQUEST, constraint=JsonConstraint(SCHEMA, "an action!")))
    assert server.last["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "an_action_", "schema": SCHEMA, "strict": True},
    }


def test_one_schema_is_sent_to_several_servers_as_each_wants_it(server: ModelServer) -> None:
    request = replace(REQUEST, constraint=JsonConstraint(SCHEMA, "action"))
    for kind in ("llama.cpp", "openai", "llama.cpp", "openai"):
        ask(options(server, server=kind, schema_subset=False), request)
        bound = {"type": "json_schema", "json_schema": {"name": "action", "schema": SCHEMA, "strict": True}}
        known = {"openai": bound, "llama.cpp": {"type": "json_object", "schema": SCHEMA}}
        assert server.last["response_format"] == known[kind]
    ask(options(server, extra={"response_format": {"type": "text"}}), request)
    assert server.last["response_format"] == {"type": "text"}


def test_a_regular_expression_goes_to_vllm_and_as_a_grammar_to_llama_cpp_and_nowhere_else(server: ModelServer) -> None:
    request = replace(REQUEST, constraint=RegexConstraint("[a-z]+"))
    ask(options(server, server="vllm"), request)
    assert server.last["structured_outputs"] == {"regex": "[a-z]+"}
    ask(options(server, server="llama.cpp"), request)
    assert server.last["grammar"] == "root ::= [a-z]+"
    with pytest.raises(ConstraintError, match="no counterpart in a grammar"):
        ask(options(server, server="llama.cpp"), replace(REQUEST, constraint=RegexConstraint("(?=a)[a-z]+")))
    sent = len(server.requests)
    with pytest.raises(ConstraintError, match="set the option server"):
        ask(options(server), request)
    assert len(server.requests) == sent


def test_a_begun_reply_is_gone_on_with_where_the_server_can(server: ModelServer) -> None:
    request = replace(REQUEST, prefill='{"action": "')
    ask(options(server, server="vllm"), request)
    assert server.last["messages"][-1] == {"role": "assistant", "content": '{"action": "'}
    assert (server.last["continue_final_message"], server.last["add_generation_prompt"]) == (True, False)
    ask(options(server, server="llama.cpp"), request)
    assert server.last["messages"][-1]["role"] == "assistant"
    assert "continue_final_message" not in server.last
    with pytest.raises(BadRequestError, match="prefilled reply"):
        ask(options(server), request)


def test_what_a_whole_reply_repeats_of_its_beginning_is_left_out(server: ModelServer) -> None:
    request = replace(REQUEST, prefill="<thinking>\nTwo and ")
    server.default = Say("<thinking>\nTwo and three make five.")
    assert ask(options(server, server="llama.cpp", stream=False), request).text == "three make five."
    server.default = Say("three make five.")
    assert ask(options(server, server="llama.cpp", stream=False), request).text == "three make five."


def test_a_server_that_refuses_to_continue_is_asked_to_go_on(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    request = replace(REQUEST, prefill="Two and ")
    words = "Assistant response prefill is incompatible with enable_thinking."
    server.say(Say(status=400, error=words), Say("three."))
    assert ask(options(server, server="llama.cpp"), request).text == "three."
    last = server.last["messages"][-2:]
    assert [message["role"] for message in last] == ["assistant", "user"]
    assert last[0]["content"] == "Two and "
    assert "Go on exactly where it stops" in last[1]["content"]
    assert "refuses prefill, which is left out from now on; a message asks the model to go on." in caplog.text


@pytest.mark.parametrize(
    ("kind", "thinking", "field", "value"),
    [
        ("vllm", False, "chat_template_kwargs", {"enable_thinking": False}),
        ("llama.cpp", True, "chat_template_kwargs", {"enable_thinking": True}),
        ("openai", False, "reasoning_effort", "none"),
    ],
)
def test_thinking_is_switched_as_each_server_wants_it(
    server: ModelServer, kind: str, thinking: bool, field: str, value: Any
) -> None:
    ask(options(server, server=kind), replace(REQUEST, thinking=thinking))
    assert server.last[field] == value


def test_newer_models_of_openai_are_told_the_most_tokens_in_their_words(server: ModelServer) -> None:
    ask(options(server, server="openai"))
    assert server.last["max_completion_tokens"] == 300
    assert "max_tokens" not in server.last


def test_pictures_are_sent_to_models_that_see_and_described_to_others(server: ModelServer) -> None:
    picture = base64.b64encode(b"\x89PNG picture").decode()
    message = Message("user", [TextPart("What is this? "), ImagePart(picture, alt="a cow")])
    ask(options(server, images=True), Request([message]))
    url = {"url": f"data:image/png;base64,{picture}"}
    assert server.last["messages"][0]["content"] == [
        {"type": "text", "text": "What is this? "},
        {"type": "image_url", "image_url": url},
    ]
    sent = server.last["messages"][0]["content"]
    ask(options(server), Request([message]))  # its vision is unknown, so the server is asked
    assert server.last["messages"][0]["content"] == sent
    ask(options(server, images=False), Request([message]))
    assert server.last["messages"][0]["content"] == "What is this? a cow"


def test_a_tools_result_is_said_as_the_user(server: ModelServer) -> None:
    ask(options(server), Request([*REQUEST.messages, Message("observation", "4")]))
    assert server.last["messages"][-1] == {"role": "user", "content": "4"}


# --- replies -------------------------------------------------------------------------------------


@both
def test_reasoning_is_kept_apart_from_the_reply(server: ModelServer, stream: bool) -> None:
    server.say(Say("I wait.", thinking="A zombie is near."))
    reply = ask(options(server, stream=stream))
    assert (reply.thinking, reply.text) == ("A zombie is near.", "I wait.")


@both
@pytest.mark.parametrize(
    ("said", "thinking", "text"),
    [
        ("<think>\nA zombie.\n</think>\n\nI wait.", "\nA zombie.\n", "I wait."),
        ("  <think>hm</think>I wait.", "hm", "I wait."),
        ("<think>A zombie is near and", "A zombie is near and", ""),
        ("<think></think>I wait.", "", "I wait."),
        ("I <think>wait</think>.", "", "I <think>wait</think>."),
        ("<thinking>x</thinking>", "", "<thinking>x</thinking>"),
        ("<thi", "", "<thi"),
        ("<think>a < b </thin", "a < b </thin", ""),
    ],
)
def test_a_think_block_at_the_beginning_is_thinking(
    server: ModelServer, stream: bool, said: str, thinking: str, text: str
) -> None:
    server.say(Say(said))
    reply = ask(options(server, stream=stream))
    assert (reply.thinking, reply.text) == (thinking, text)


@both
def test_a_template_that_opens_the_block_is_understood_when_told(server: ModelServer, stream: bool) -> None:
    server.say(Say("A zombie.</think> I wait."))
    reply = ask(options(server, stream=stream, think_opened=True))
    assert (reply.thinking, reply.text) == ("A zombie.", "I wait.")


@both
def test_a_reply_that_ran_out_of_tokens_says_so(server: ModelServer, stream: bool) -> None:
    server.say(Say("one two three four"))
    reply = ask(options(server, stream=stream), replace(REQUEST, sampling=Sampling(max_tokens=2)))
    assert reply.text == "one two "
    assert reply.truncated


@both
def test_a_stop_text_ends_the_reply_and_is_named_where_the_server_tells(server: ModelServer, stream: bool) -> None:
    server.say(Say("I wait. END and more"))
    reply = ask(options(server, stream=stream), replace(REQUEST, stop=("END",)))
    assert reply.text == "I wait. "
    assert (reply.finish.reason, reply.finish.stop_sequence) == ("stop_sequence", "END")


@both
@pytest.mark.parametrize(("told", "reason"), [("content_filter", "content_filter"), ("something new", "unknown")])
def test_other_reasons_to_finish_are_told(server: ModelServer, stream: bool, told: str, reason: str) -> None:
    server.say(Say(finish=told))
    assert ask(options(server, stream=stream)).finish.reason == reason


@pytest.mark.parametrize("style", ["plain", "crlf", "cr", "comments", "lines", "bytes", "bare"])
def test_events_are_read_however_they_are_written(server: ModelServer, style: Any) -> None:
    server.say(Say("Grüße: 你好, \U0001f9df!", thinking="Ünïcödé", style=style))
    reply = ask(options(server, stream=True))
    assert (reply.text, reply.thinking) == ("Grüße: 你好, \U0001f9df!", "Ünïcödé")


def test_a_stream_without_its_closing_mark_is_whole_if_it_told_why_it_ended(server: ModelServer) -> None:
    server.say(Say("I wait.", done=False))
    reply = ask(options(server, stream=True))
    assert (reply.text, reply.finish.reason, reply.usage.completion_tokens) == ("I wait.", "stop", 2)


def test_a_server_that_does_not_stream_when_asked_is_understood(server: ModelServer) -> None:
    server.say(Say("I wait.", unstreamed=True))
    reply = ask(options(server, stream=True))
    assert (reply.text, reply.usage.completion_tokens) == ("I wait.", 2)


# --- misbehaviour ------------------------------------------------------------------------------


def test_a_reply_that_does_not_begin_in_time_is_given_up_when_streamed(server: ModelServer) -> None:
    server.say(DEAF)
    with pytest.raises(BackendTimeoutError, match=r"no part of a reply of openai/qwen3:8b within 0\.05 s"):
        ask(options(server, stream=True, first_token_timeout=0.05))


@both
@pytest.mark.parametrize(
    "raw",
    [b"[]", b"null", b"{}", b'{"choices": []}', b'{"choices": 5}', b"[" * 100_000],
    ids=lambda raw: repr(raw[:16]),
)
def test_json_that_is_no_reply_is_told(server: ModelServer, stream: bool, raw: bytes) -> None:
    server.say(Say(raw=b"data: " + raw + b"\n\n" if stream else raw))
    with pytest.raises(ServerFailedError, match=server.base_url):
        ask(options(server, stream=stream))


@both
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (503, ServerFailedError),
        (529, ServerFailedError),
        (408, BackendTimeoutError),
        (413, ContextTooSmallError),
        (422, BadRequestError),
        (302, BadRequestError),
    ],
)
def test_a_rarer_status_is_an_error_of_its_class_and_names_the_server(
    server: ModelServer, stream: bool, status: int, kind: type[BackendError]
) -> None:
    server.say(Say(status=status, error="Those are my words."))
    with pytest.raises(BackendError) as caught:
        ask(options(server, stream=stream))
    assert type(caught.value) is kind
    assert server.base_url in str(caught.value) or "openai/qwen3:8b" in str(caught.value)
    assert status == 302 or "Those are my words." in str(caught.value)
    assert len(server.requests) == 1, "the client may not try again by itself"


def test_an_account_with_nothing_left_is_not_asked_again(server: ModelServer) -> None:
    server.say(Say(status=429, error="You exceeded your current quota.", code="insufficient_quota"))
    with pytest.raises(BadRequestError, match="no credit left"):
        ask(options(server))


@both
def test_a_server_that_is_away_for_a_while_says_how_long_to_wait(server: ModelServer, stream: bool) -> None:
    server.say(Say(status=503, error="Down for a moment.", headers={"Retry-After": "12"}))
    with pytest.raises(RateLimitError, match=r"is unavailable and asks to wait 12 s: Down for a moment\.") as caught:
        ask(options(server, stream=stream))
    assert caught.value.retry_after == 12


def test_an_error_in_a_body_that_claims_success_is_told(server: ModelServer) -> None:
    server.say(Say(error_within="The upstream is gone"))
    with pytest.raises(ServerFailedError, match="The upstream is gone"):
        ask(options(server))


@both
def test_a_prompt_that_does_not_fit_is_told(server: ModelServer, stream: bool) -> None:
    request = Request([Message("user", "word " * 50_000)])
    with pytest.raises(ContextTooSmallError, match="maximum context length is 40960"):
        ask(options(server, stream=stream), request)


@both
def test_a_model_that_is_not_there_is_named(server: ModelServer, stream: bool) -> None:
    with pytest.raises(ModelNotFoundError, match="has no model 'gpt-5'"):
        ask(options(server, stream=stream), name="gpt-5")


def test_a_wrong_base_url_is_explained(server: ModelServer) -> None:
    with pytest.raises(ModelNotFoundError, match="usually end in /v1"):
        ask(OpenAIOptions(base_url=server.address))


@both
def test_nobody_at_the_address_is_told(nowhere: str, stream: bool) -> None:
    with pytest.raises(NoServerError, match=rf"No server answers at {nowhere}/v1; is it running\?"):
        ask(OpenAIOptions(base_url=f"{nowhere}/v1", stream=stream))


# --- keys --------------------------------------------------------------------------------------


def test_the_key_is_sent_and_accepted(server: ModelServer) -> None:
    server.key = "sk-secret"
    assert ask(options(server, api_key="sk-secret")).text == "Hello there."
    assert server.requests[-1].headers["Authorization"] == "Bearer sk-secret"


def test_a_missing_key_names_the_variable_to_set(server: ModelServer) -> None:
    server.key = "sk-secret"
    with pytest.raises(AuthenticationError, match="requires a key; set OPENAI_API_KEY"):
        ask(options(server))


@both
def test_a_wrong_key_is_never_repeated(server: ModelServer, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    server.key = "sk-secret"
    chosen = options(server, api_key="sk-wrong-one", stream=stream)
    with caplog.at_level(0), pytest.raises(AuthenticationError, match="OPENAI_API_KEY") as caught:
        ask(chosen)
    said = [str(caught.value), repr(chosen), *(record.getMessage() for record in caplog.records)]
    cause = caught.value.__cause__ or caught.value.__context__
    assert not [text for text in [*said, repr(cause)] if "sk-wrong-one" in text]
    assert "Incorrect API key provided: (key)" in str(caught.value)


# --- options -----------------------------------------------------------------------------------


def test_base_url_and_key_come_from_the_environment_unless_given() -> None:
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "k1", "OTHER_KEY": "k2"}
    found = options_of({"model": "m"}, environment)
    assert (found.base_url, found.api_key) == ("http://127.0.0.1:9/v1", "k1")
    given = options_of(
        {"base_url": "http://127.0.0.1:8/v1", "key_variable": "OTHER_KEY", "timeout": 5, "calls": "no"}, environment
    )
    assert (given.base_url, given.api_key, given.timeout, given.calls) == ("http://127.0.0.1:8/v1", "k2", 5.0, False)
    assert options_of({}, {}).base_url == "https://api.openai.com/v1"
    assert options_of({}, {}).dialect.max_tokens == "max_completion_tokens"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"base_url": "127.0.0.1:8000"}, "Invalid base URL '.*'; expected something like http"),
        ({"base_url": "http://127.0.0.1:99999/v1"}, "Invalid base URL '.*'; expected something like http"),
        ({"base_url": "http://[::1/v1"}, "Invalid base URL '.*'; expected something like http"),
        ({"base_url": "http://a b/v1"}, "Invalid base URL '.*'; expected something like http"),
        ({"headers": {"X": "a\nb"}}, "header 'X' contains characters that are not allowed"),
        ({"headers": {"a b": "c"}}, "'a b' is no name of a header"),
        ({"base_url": "http://me:pass@127.0.0.1/v1"}, "must not contain a password"),
        ({"sever": "vllm"}, "Did you mean 'server'"),
        ({"server": "vlm"}, "Did you mean 'vllm'"),
        ({"timeout": "long"}, "timeout .* must be a number"),
        ({"stream": 1}, "stream .* must be yes or no"),
        ({"stream": "perhaps"}, "stream .* must be yes or no"),
        ({"api_key": "a\nb"}, "not allowed in a key"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(config: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        options_of(config, {})
    assert "pass@" not in str(caught.value)


# --- lifecycle and load --------------------------------------------------------------------------


def test_all_requests_are_in_flight_at_once_without_a_limit(server: ModelServer) -> None:
    server.default = Say("here", wait=True)

    async def many(backend: OpenAIBackend) -> list[Reply]:
        asked = [asyncio.create_task(backend.complete(REQUEST)) for _ in range(150)]
        await asyncio.to_thread(server.await_requests, 150)
        server.release()
        return await asyncio.gather(*asked)

    assert [reply.text for reply in using(options(server), many)] == ["here"] * 150


def test_openai_itself_is_not_asked_without_a_key_and_the_variable_is_named() -> None:
    backend = OpenAIBackend("gpt-x", options_of({}, {}))
    with pytest.raises(AuthenticationError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL for another server"):
        asyncio.run(backend.complete(Request((Message("user", "Hello?"),))))
