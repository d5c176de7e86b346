"""The checks of model backends as a pytest class."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from wsap_core.errors import UsageError
from wsap_core.seams.model import Abilities, Backend, Draft, Message, Reply, Request
from wsap_core.seams.model_errors import BackendError

T = TypeVar("T")

REQUEST = Request([Message("system", "Be brief."), Message("user", "Say hello to everybody.")])

_SECONDS = 120


class BackendTests:
    """Checks a model backend against its protocol. Subclass it as `class TestMyBackend(BackendTests)` with a fixture
    `make_backend`, which returns a function that creates a backend whose model answers every request with a few words;
    and if possible with a fixture `make_failing`, for a backend whose every request fails."""

    @pytest.fixture
    def make_backend(self) -> Callable[[], Backend]:
        """Return a factory of backends; subclasses override it."""
        raise UsageError("Define a fixture `make_backend` that returns a function which creates a backend.")

    @pytest.fixture
    def make_failing(self) -> Callable[[], Backend] | None:
        """Return a factory of backends whose requests fail, such as one with the address of no server."""
        return None

    def test_the_members_are_there(self, make_backend: Callable[[], Backend]) -> None:
        """The backend has all members of the protocol, and its address is BACKEND/MODEL."""

        async def look(backend: Backend) -> None:
            assert isinstance(backend, Backend)
            assert isinstance(backend.abilities, Abilities)
            name, _, model = backend.model.partition("/")
            assert name, f"the address {backend.model!r} is not BACKEND/MODEL"
            assert model, f"the address {backend.model!r} is not BACKEND/MODEL"

        _using(make_backend, look)

    def test_a_reply_is_whole(self, make_backend: Callable[[], Backend]) -> None:
        """A request returns a `Reply` with a text."""
        reply = _using(make_backend, _asked)
        assert isinstance(reply, Reply), f"complete returned a {type(reply).__name__}, not a Reply"
        assert isinstance(reply.text, str)
        assert reply.text.strip(), "the reply is empty"

    def test_what_is_shown_is_the_reply_so_far(self, make_backend: Callable[[], Backend]) -> None:
        """What is shown while a reply is written are drafts, and the last one begins the reply; a backend that does not
        stream shows none."""
        shown: list[Draft] = []
        reply = _using(make_backend, lambda backend: backend.complete(REQUEST, shown.append))
        for draft in shown:
            assert isinstance(draft, Draft), f"on_text was called with a {type(draft).__name__}, not with a Draft"
        if shown:
            assert reply.text.startswith(shown[-1].text), "the last draft is not the beginning of the reply"
            assert reply.thinking.startswith(shown[-1].thinking), "the last draft's thinking is not the reply's"

    def test_usage_is_counted(self, make_backend: Callable[[], Backend]) -> None:
        """A reply counts one call and its tokens, estimated if the server does not count; its cost is known or None."""
        usage = _using(make_backend, _asked).usage
        assert usage.calls == 1
        assert usage.prompt_tokens > 0
        assert usage.completion_tokens > 0
        assert usage.cost is None or usage.cost >= 0

    def test_requests_at_once_are_all_answered(self, make_backend: Callable[[], Backend]) -> None:
        """Several requests at once each get a reply."""

        async def ask(backend: Backend) -> list[Reply]:
            return await asyncio.gather(*(_asked(backend) for _ in range(3)))

        assert all(reply.text.strip() for reply in _using(make_backend, ask))

    def test_a_request_that_is_cancelled_stops_nothing_else(self, make_backend: Callable[[], Backend]) -> None:
        """After a request is cancelled, the next one is answered."""

        async def leave(backend: Backend) -> Reply:
            asked = asyncio.ensure_future(_asked(backend))
            await asyncio.sleep(0)  # it begins
            asked.cancel()
            await asyncio.wait([asked])
            return await _asked(backend)

        assert _using(make_backend, leave).text.strip()

    def test_a_failure_is_an_error_of_the_protocol(self, make_failing: Callable[[], Backend] | None) -> None:
        """A request that fails raises a `BackendError` with one sentence for the user."""
        if make_failing is None:
            pytest.skip("there is no fixture `make_failing`")
        with pytest.raises(BackendError) as caught:
            _using(make_failing, _asked)
        assert str(caught.value).strip()


async def _asked(backend: Backend) -> Reply:
    return await backend.complete(REQUEST)


def _using(make: Callable[[], Backend], work: Callable[[Backend], Awaitable[T]]) -> T:
    async def main() -> T:
        backend = make()
        try:
            async with asyncio.timeout(_SECONDS):
                return await work(backend)
        finally:
            await backend.aclose()

    return asyncio.run(main())
