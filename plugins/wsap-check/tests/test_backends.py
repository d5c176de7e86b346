"""The checks of model backends accept a sound backend, and each finds its fault in a broken one."""

from __future__ import annotations

import asyncio

import pytest

from wsap_check import BackendTests
from wsap_core.seams.agent import Usage
from wsap_core.seams.model import Abilities, Draft, Finish, OnText, Reply, Request
from wsap_core.seams.model_errors import ServerFailedError


class Sound:
    """Says hello, and shows it in two pieces."""

    model = "hello/world"
    abilities = Abilities()
    usage = Usage(1, 8, 2, None)
    shown = ("Hello ", "Hello there.")
    text = "Hello there."

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        if on_text is not None:
            for text in self.shown:
                on_text(Draft(text))
        return Reply(self.text, finish=Finish(usage=self.usage))

    async def aclose(self) -> None:
        """Release nothing."""


class NoAddress(Sound):
    model = "world"


class SaysNothing(Sound):
    text = " "


class ShowsPieces(Sound):
    shown = ("Hello ", "there.")


class ShowsText(Sound):
    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        if on_text is not None:
            on_text("Hello ")  # type: ignore[arg-type]  # the fault
        return await super().complete(request)


class CountsNothing(Sound):
    usage = Usage()


class OneAtATime(Sound):
    """Refuses a request while another is answered, and for ever after one that was cancelled."""

    busy = False

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        if self.busy:
            raise ServerFailedError("I am busy.")
        self.busy = True
        await asyncio.sleep(0)
        self.busy = False
        return await super().complete(request, on_text)


class RaisesItsOwn(Sound):
    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        raise OSError("The line is dead.")


class Refuses(Sound):
    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        raise ServerFailedError("The server is down.")


class TestSound(BackendTests):
    @pytest.fixture
    def make_backend(self) -> type[Sound]:
        return Sound

    @pytest.fixture
    def make_failing(self) -> type[Sound]:
        return Refuses


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("the_members_are_there", NoAddress),
        ("a_reply_is_whole", SaysNothing),
        ("what_is_shown_is_the_reply_so_far", ShowsPieces),
        ("what_is_shown_is_the_reply_so_far", ShowsText),
        ("usage_is_counted", CountsNothing),
        ("a_request_that_is_cancelled_stops_nothing_else", OneAtATime),
        ("requests_at_once_are_all_answered", OneAtATime),
        ("a_failure_is_an_error_of_the_protocol", RaisesItsOwn),
        ("a_failure_is_an_error_of_the_protocol", Sound),
    ],
)
def test_each_check_finds_its_fault(name: str, broken: type[Sound]) -> None:
    with pytest.raises((AssertionError, OSError, ServerFailedError, pytest.fail.Exception)):
        getattr(BackendTests(), f"test_{name}")(broken)
