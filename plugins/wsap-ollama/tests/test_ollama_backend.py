"""`ollama/<model>` against a real server on this machine that speaks Ollama's protocol, and misbehaves on request."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from backend_suite import BackendSuite
from llm_server import Card, ModelServer, Refusal, Say

from wsap_core.errors import ConfigError
from wsap_core.seams.context import Context
from wsap_core.seams.model import (
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
    BackendError,
    BadRequestError,
    ConstraintError,
    ContextTooSmallError,
    ModelNotFoundError,
    NoServerError,
    RateLimitError,
    ServerFailedError,
)
from wsap_core.seams.services import Services
from wsap_ollama import OllamaBackend, OllamaOptions
from wsap_ollama.backend import ModelCard, create
from wsap_ollama.listing import listing
from wsap_ollama.options import options_of

T = TypeVar("T")

REQUEST = Request([Message("system", "Be brief."), Message("user", "Hello?")])
SCHEMA = {"type": "object", "properties": {"action": {"const": "wait"}}, "required": ["action"]}
PLAIN = "llama3.2:latest"

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def options(server: ModelServer, /, **more: Any) -> OllamaOptions:
    return OllamaOptions(host=server.address, **more)


def using(chosen: OllamaOptions, work: Callable[[OllamaBackend], Awaitable[T]], name: str = "qwen3:8b") -> T:
    async def main() -> T:
        backend = OllamaBackend(name, chosen)
        try:
            async with asyncio.timeout(30):
                return await work(backend)
        finally:
            await backend.aclose()

    return asyncio.run(main())


def ask(chosen: OllamaOptions, request: Request = REQUEST, name: str = "qwen3:8b") -> Reply:
    return using(chosen, lambda backend: backend.complete(request), name)


class TestOllama(BackendSuite):
    """What every backend has to do."""

    address = "ollama/qwen3:8b"
    broken_json = "broken JSON"
    too_long = "max_bytes"

    def backend(self, server: ModelServer, **more: Any) -> OllamaBackend:
        return OllamaBackend("qwen3:8b", options(server, **more))

    def backend_at(self, place: str, **more: Any) -> OllamaBackend:
        return OllamaBackend("qwen3:8b", OllamaOptions(host=place, **more))


# --- what is sent ------------------------------------------------------------------------------


def test_the_protocols_recommended_values_are_sent(server: ModelServer) -> None:
    ask(options(server), name=PLAIN)
    assert server.last == {
        "model": PLAIN,
        "stream": False,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}],
        "tools": [],
        "options": {
            "num_predict": 300,
            "temperature": 0.7,
            "top_p": 0.9,
            "repeat_penalty": 1.1,
            "num_ctx": 4096,
        },
    }


def test_a_thinking_model_gets_tokens_to_think_with_and_room_for_them(server: ModelServer) -> None:
    ask(options(server))
    assert (server.last["options"]["num_predict"], server.last["options"]["num_ctx"]) == (1324, 5120)
    assert "think" not in server.last
    ask(options(server), replace(REQUEST, thinking=False))
    assert server.last["think"] is False
    assert (server.last["options"]["num_predict"], server.last["options"]["num_ctx"]) == (300, 4096)
    ask(options(server, think=False), replace(REQUEST, thinking=True))
    assert server.last["think"] is True


def test_a_model_that_can_not_think_is_not_asked_to(server: ModelServer) -> None:
    assert ask(options(server), replace(REQUEST, thinking=True), PLAIN).text == "Hello there."
    assert "think" not in server.last


def test_a_schema_is_sent_as_the_format(server: ModelServer) -> None:
    ask(options(server), replace(REQUEST, constraint=JsonConstraint(SCHEMA)))
    assert server.last["format"] == SCHEMA


def test_a_regular_expression_is_refused_before_anything_is_asked(server: ModelServer) -> None:
    with pytest.raises(ConstraintError, match="only by JSON Schema"):
        ask(options(server), replace(REQUEST, constraint=RegexConstraint("[a-z]+")))
    assert server.asked == []


def test_seed_stop_texts_and_the_requests_own_options_are_sent(server: ModelServer) -> None:
    request = replace(
        REQUEST, stop=("END",), sampling=Sampling(seed=7, repeat_penalty=1.3), options={"ollama": {"top_k": 5}}
    )
    server.say(Say("I wait. END and more"))
    reply = ask(options(server, extra={"min_p": 0.1}), request)
    sent = server.last["options"]
    assert (sent["seed"], sent["stop"], sent["repeat_penalty"]) == (7, ["END"], 1.3)
    assert (sent["top_k"], sent["min_p"]) == (5, 0.1)
    assert reply.text == "I wait. "


def test_a_begun_reply_is_sent_as_the_assistants_turn(server: ModelServer) -> None:
    ask(options(server), replace(REQUEST, prefill='{"action": "'))
    assert server.last["messages"][-1] == {"role": "assistant", "content": '{"action": "'}


def test_pictures_go_to_models_that_see_and_are_described_to_others(server: ModelServer) -> None:
    picture = base64.b64encode(b"\x89PNG picture").decode()
    message = Message("user", [TextPart("What is this? "), ImagePart(picture, alt="a cow")])
    ask(options(server), Request([message]), "llava:7b")
    assert server.last["messages"] == [{"role": "user", "content": "What is this? ", "images": [picture]}]
    ask(options(server), Request([message]), PLAIN)
    assert server.last["messages"] == [{"role": "user", "content": "What is this? a cow"}]


def test_a_picture_is_never_taken_for_the_name_of_a_file(server: ModelServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"private")
    for name in (str(secret), "a.png"):
        with pytest.raises(BadRequestError, match="not base64"):
            ask(options(server), Request([Message("user", [ImagePart(name)])]), "llava:7b")
    assert server.asked == []


def test_what_a_model_can_do_is_known_once_it_was_looked_at(server: ModelServer) -> None:
    async def look(backend: OllamaBackend) -> tuple[Any, Any]:
        before = backend.abilities
        await backend.prepare()
        await backend.prepare()
        return before, backend.abilities

    before, after = using(options(server), look)
    assert (before.images, before.thinking, before.json_schema) == (False, False, True)
    assert (after.images, after.thinking, after.context) == (False, True, 4096)
    assert [r.path for r in server.requests] == ["/api/show"]
    assert using(options(server, num_ctx=100_000), look)[1].context == 40960


# --- what comes back ---------------------------------------------------------------------------


@both
def test_thinking_is_kept_apart_from_the_reply(server: ModelServer, stream: bool) -> None:
    server.say(Say("I wait.", thinking="A zombie is near."))
    reply = ask(options(server, stream=stream))
    assert (reply.thinking, reply.text) == ("A zombie is near.", "I wait.")


@both
@pytest.mark.parametrize(
    ("said", "thinking", "text"),
    [
        ("<think>\nA zombie.\n</think>\n\nI wait.", "\nA zombie.\n", "I wait."),
        ("<think>A zombie is near and", "A zombie is near and", ""),
    ],
)
def test_a_think_block_of_an_older_server_is_thinking(
    server: ModelServer, stream: bool, said: str, thinking: str, text: str
) -> None:
    server.say(Say(said))
    reply = ask(options(server, stream=stream))
    assert (reply.thinking, reply.text) == (thinking, text)


# --- misbehaviour ------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("raw", [b"[]", b"null", b"{}", b"5", b"[" * 100_000], ids=lambda raw: repr(raw[:16]))
def test_json_that_is_no_reply_is_told(server: ModelServer, stream: bool, raw: bytes) -> None:
    server.say(Say(raw=raw + b"\n"))
    with pytest.raises(ServerFailedError, match=server.address):
        ask(options(server, stream=stream))


@both
@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (503, "server busy, please try again. maximum pending requests exceeded", RateLimitError),
        (400, "the input length exceeds the context length", ContextTooSmallError),
    ],
)
def test_what_ollama_says_with_a_status_tells_the_class_of_the_error(
    server: ModelServer, stream: bool, status: int, words: str, kind: type[BackendError]
) -> None:
    server.say(Say(status=status, error=words, headers={"Retry-After": "7"}))
    with pytest.raises(BackendError, match=words) as caught:
        ask(options(server, stream=stream))
    assert type(caught.value) is kind
    assert len(server.asked) == 1, "the client may not try again by itself"


REFUSALS = [
    Refusal(400, 'invalid format: "{...}"; expected "json" or a valid JSON Schema object'),
    Refusal(400, "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"),
    Refusal(500, "invalid JSON schema in format"),
    Refusal(500, "failed to load model vocabulary required for format"),
    Refusal(500, "failed to load model vocabulary required for format", within=True),
    Refusal(500, "error parsing grammar: Undefined rule identifier 'space'"),
]


@both
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: f"{refusal.words} {refusal.within}")
def test_a_form_that_ollama_can_not_bind_a_reply_to_is_told_as_such(
    server: ModelServer, stream: bool, refusal: Refusal
) -> None:
    server.models[PLAIN] = Card(refusal=refusal)
    assert ask(options(server, stream=stream), name=PLAIN).text == "Hello there."
    with pytest.raises(ConstraintError, match=r"can't constrain the reply of ollama/llama3\.2:latest"):
        ask(options(server, stream=stream), replace(REQUEST, constraint=JsonConstraint(SCHEMA)), name=PLAIN)


def test_a_failure_that_has_nothing_to_do_with_the_form_stays_what_it_is(server: ModelServer) -> None:
    server.say(Say(status=500, error="llama runner process has terminated"))
    with pytest.raises(ServerFailedError):
        ask(options(server), replace(REQUEST, constraint=JsonConstraint(SCHEMA)))


def test_a_model_in_ollamas_cloud_is_not_said_to_keep_to_a_schema(server: ModelServer) -> None:
    assert OllamaBackend("gpt-oss:120b-cloud").abilities.json_schema is False
    assert OllamaBackend("glm-5:cloud").abilities.json_schema is False
    assert OllamaBackend("qwen3:8b").abilities.json_schema is True


@both
def test_an_absent_server_says_how_to_start_it(nowhere: str, stream: bool) -> None:
    with pytest.raises(NoServerError, match=f"Ollama does not answer at {nowhere}; start it with: ollama serve"):
        ask(OllamaOptions(host=nowhere, stream=stream))


def test_a_server_that_goes_away_says_how_to_start_it(nowhere: str) -> None:
    async def gone(backend: OllamaBackend) -> Reply:
        backend._card = ModelCard()  # looked at while the server was still there
        return await backend.complete(REQUEST)

    with pytest.raises(NoServerError, match="ollama serve"):
        using(OllamaOptions(host=nowhere, stream=True), gone)


@both
def test_a_model_that_is_not_pulled_says_how_to_get_it(server: ModelServer, stream: bool) -> None:
    with pytest.raises(ModelNotFoundError, match="get it with: ollama pull qwen3:32b"):
        ask(options(server, stream=stream), name="qwen3:32b")


def test_a_prompt_that_ollama_would_cut_without_a_word_is_refused(server: ModelServer) -> None:
    request = Request([Message("system", "rules"), Message("user", "word " * 5000)])
    with pytest.raises(ContextTooSmallError, match=r"context of 4096 .* num_ctx"):
        ask(options(server), request)
    assert server.asked == []
    assert ask(options(server, num_ctx=8192), request).text == "Hello there."


def test_a_reply_gets_what_the_prompt_leaves_and_more_is_asked_for_by_its_flag(server: ModelServer) -> None:
    long = Request([Message("user", "word " * 1200)], sampling=Sampling(max_tokens=3350))
    assert ask(options(server), long).text == "Hello there."
    sent = server.last["options"]
    assert 2048 < sent["num_predict"] <= sent["num_ctx"] - 1200, "it thinks beside that"
    with pytest.raises(ContextTooSmallError, match="--model-option num_ctx=8192,"):
        ask(options(server), replace(long, messages=[Message("user", "word " * 3900)]))


# --- the plugin --------------------------------------------------------------------------------


def test_the_factory_takes_options_and_refuses_wrong_ones() -> None:
    told: list[str] = []
    services = Services(progress=told.append)
    backend = create(Context.create(config={"model": "qwen3:8b", "timeout": 5, "num_ctx": 512}, services=services))
    assert (backend.model, backend.options.timeout, backend.options.num_ctx) == ("ollama/qwen3:8b", 5.0, 512)
    for config, words in [
        ({"model": ""}, "ollama/qwen3:8b"),
        ({"model": "m", "num_ctxx": 5}, "Did you mean 'num_ctx'"),
        ({"model": "m", "num_ctx": "many"}, "num_ctx .* whole number"),
        ({"model": "m", "think": 1}, "think .* yes or no"),
    ]:
        with pytest.raises(ConfigError, match=words):
            create(Context.create(config=config))


def list_at(host: str) -> Any:
    return asyncio.run(listing(Context.create(config={"host": host})))


def test_pulled_models_are_listed_with_their_context_and_what_they_can_do(server: ModelServer) -> None:
    server.models["nomic-embed-text:latest"] = Card(8192, ("embedding",), family="nomic-bert")
    found = list_at(server.address)
    assert found.reachable
    assert found.place == server.address
    listed = {
        m.address: (m.abilities.context, m.abilities.thinking, m.abilities.images, m.detail) for m in found.models
    }
    assert listed == {
        "ollama/qwen3:8b": (40960, True, False, "8.2B, Q4_K_M, 5.2 GB"),
        "ollama/llama3.2:latest": (131072, False, False, "3.2B, Q4_K_M, 5.2 GB"),
        "ollama/llava:7b": (32768, False, True, "7B, Q4_K_M, 5.2 GB"),
    }


def test_a_server_without_models_says_how_to_get_one(server: ModelServer) -> None:
    server.models.clear()
    found = list_at(server.address)
    assert found.reachable
    assert "ollama pull qwen3:8b" in found.note


def test_an_absent_server_is_listed_with_the_reason(nowhere: str) -> None:
    found = list_at(nowhere)
    assert not found.reachable
    assert found.reason == f"Ollama does not answer at {nowhere}; start it with: ollama serve"


def test_ollamas_own_options_are_given_by_name_and_a_misspelt_one_is_refused_with_a_guess() -> None:
    given = options_of({"model": "x", "top_k": 40, "extra": {"min_p": 0.1}, "num_ctx": 8192, "keep_alive": -1})
    assert given.extra == {"min_p": 0.1, "top_k": 40}
    assert (given.num_ctx, given.keep_alive) == (8192, "-1s")
    assert options_of({"keep_alive": "5m"}).keep_alive == "5m"
    for wrong, meant in (("topk", "top_k"), ("num_ctxx", "num_ctx")):
        with pytest.raises(ConfigError, match=f"'{wrong}'. Did you mean '{meant}'"):
            options_of({wrong: 1})
