"""A story is sent to a real server: each part at least once, in order, signed, and with its address in no log."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sandbox_kit import mill
from story_kit import Recorded, told

from wsap_core.errors import ConfigError, StorageError
from wsap_nexus.http.webhook import Webhook
from wsap_sandbox.story.webhook import StorySender

SECRET = "the miller's secret"


@dataclass
class Receiver:
    """A server that takes parts of a story, or doesn't."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    """Statuses of the next answers; after them everything is taken."""
    seen: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)
    """Path, headers and body of each request."""
    hold: threading.Event = field(default_factory=threading.Event)
    """Nothing is answered until it is set."""
    asked: threading.Event = field(default_factory=threading.Event)
    """Set when something was sent."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, _, body in self.seen]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    found.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.seen.append((self.path, dict(self.headers), body))
            found.asked.set()
            found.hold.wait(60)
            self.send_response(found.answers.pop(0) if found.answers else 204)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}/hook/token-4711"
    yield found
    found.hold.set()
    server.shutdown()
    server.server_close()
    thread.join(60)


class Waits:
    """A clock on which waiting takes no time."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def now(self) -> float:
        return sum(self.waited)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        await asyncio.sleep(0)


Make = Callable[..., StorySender]


@pytest.fixture
def hook(receiver: Receiver, tmp_path: Path) -> Make:
    def make(runs: Recorded, *, since: int = 0, url: str = "", **more: Any) -> StorySender:
        given = {"clock": Waits(), "now": lambda: 1_800_000_000.5, **more}
        webhook = Webhook(url or receiver.url, SECRET, "the story", "wsap-sandbox", **given)
        return StorySender(runs, "mill", webhook, tmp_path / "sent", since)  # type: ignore[arg-type]

    return make


@pytest.mark.parametrize("late", [False, True])
def test_each_part_is_sent_once_and_in_order(receiver: Receiver, hook: Make, late: bool) -> None:
    assert asyncio.run(hook(Recorded(told(mill(), 4, late=late))).send()) == 12
    assert [(m["tick"], m["place"]["name"]) for m in receiver.messages] == [
        (tick, place) for tick in range(1, 5) for place in ("the mill", "the yard", "the road")
    ]
    assert len({m["id"] for m in receiver.messages}) == 12
    first = receiver.messages[0]
    assert (first["title"], first["run"], first["kind"], first["language"]) == ("The mill", "mill", "story", "en")
    assert first["text"].startswith("In the mill it was the 1th day.")


def test_the_receiver_can_check_the_signature(receiver: Receiver, hook: Make) -> None:
    asyncio.run(hook(Recorded(told(mill(), 1))).send())
    for _, headers, body in receiver.seen:
        when, given = (part.partition("=")[2] for part in headers["WSAP-Signature"].split(","))
        assert when == "1800000000"
        expected = hmac.digest(SECRET.encode(), b"1800000000." + body, hashlib.sha256).hex()
        assert hmac.compare_digest(given, expected)
        assert headers["WSAP-Event"] == json.loads(body)["id"]


def test_what_is_not_taken_is_sent_again_ever_more_seldom(receiver: Receiver, hook: Make) -> None:
    receiver.answers = [500, 429, 404, 200]
    clock, said = Waits(), list[str]()
    asyncio.run(hook(Recorded(told(mill(), 1)), clock=clock, tell=said.append).send())
    assert clock.waited == [1.0, 2.0, 4.0]
    assert [m["id"] for m in receiver.messages[:4]] == [receiver.messages[0]["id"]] * 4
    assert len(receiver.messages) == 6
    assert said == [
        "The webhook did not accept a part of the story: it responds with status 500. It is resent until accepted."
    ]


def test_waiting_is_bounded(receiver: Receiver, hook: Make) -> None:
    receiver.answers = [503] * 12
    clock = Waits()
    asyncio.run(hook(Recorded(told(mill(), 1)), clock=clock).send())
    assert max(clock.waited) == 300.0


def test_a_redirect_is_not_followed(receiver: Receiver, hook: Make) -> None:
    receiver.answers = [302, 307]
    said: list[str] = []
    asyncio.run(hook(Recorded(told(mill(), 1)), tell=said.append).send())
    assert {path for path, _, _ in receiver.seen} == {"/hook/token-4711"}
    assert "redirects are not followed" in said[0]


@pytest.mark.slow
def test_a_new_process_goes_on_where_the_last_one_was(receiver: Receiver, hook: Make) -> None:
    events = list(told(mill(), 5))
    runs = Recorded(events[:8])  # two ticks
    assert asyncio.run(hook(runs).send()) == 6
    assert asyncio.run(hook(runs).send()) == 0
    runs.add(*events[8:])
    assert asyncio.run(hook(runs).send()) == 9
    assert [m["tick"] for m in receiver.messages] == [n for n in range(1, 6) for _ in range(3)]


def test_a_part_whose_sender_was_killed_comes_again_with_its_id(receiver: Receiver, hook: Make, tmp_path: Path) -> None:
    runs = Recorded(told(mill(), 2))
    asyncio.run(hook(runs).send())
    (kept,) = (tmp_path / "sent").iterdir()
    kept.write_text(json.dumps({"seq": 3, "tick": 1}))  # as it was before the second tick was taken
    asyncio.run(hook(runs).send())
    ids = [m["id"] for m in receiver.messages]
    assert ids[6:] == ids[3:6]


def test_narration_is_sent_once_its_tick_is_recorded(receiver: Receiver, hook: Make) -> None:
    events = list(told(mill(), 2))
    runs = Recorded(events[:7])  # the second tick is told, and not yet recorded
    assert asyncio.run(hook(runs).send()) == 3
    runs.add(events[7])
    assert asyncio.run(hook(runs).send()) == 3
    assert [m["tick"] for m in receiver.messages] == [1, 1, 1, 2, 2, 2]


def test_a_story_that_goes_back_says_so(receiver: Receiver, hook: Make) -> None:
    runs = Recorded(told(mill(), 3))
    runs.add({"kind": "rewound", "step": None, "body": {"to": 1}}, *list(told(mill(), 2))[4:])
    asyncio.run(hook(runs).send())
    kinds = [(m["kind"], m["tick"]) for m in receiver.messages]
    assert kinds[9:] == [("rewound", 1), ("story", 2), ("story", 2), ("story", 2)]


def test_a_story_can_be_sent_from_a_tick_on(receiver: Receiver, hook: Make) -> None:
    asyncio.run(hook(Recorded(told(mill(), 4)), since=3).send())
    assert [m["tick"] for m in receiver.messages] == [4, 4, 4]


def test_where_sending_begins_is_kept_before_anything_is_sent(receiver: Receiver, hook: Make) -> None:
    events = list(told(mill(), 4))
    runs = Recorded(events[:4])
    assert asyncio.run(hook(runs, since=1).send()) == 0  # killed here
    runs.add(*events[4:])
    assert asyncio.run(hook(runs, since=4).send()) == 9


def test_a_run_that_has_not_begun_is_waited_for(receiver: Receiver, hook: Make) -> None:
    runs = Recorded(())
    webhook = hook(runs)
    assert asyncio.run(webhook.send()) == 0
    runs.add(*told(mill(), 1))
    assert asyncio.run(webhook.send()) == 3


@pytest.mark.slow
def test_ticks_go_on_while_the_receiver_hangs(receiver: Receiver, hook: Make) -> None:
    receiver.hold.clear()
    events = list(told(mill(), 30))
    runs = Recorded(events[:4])

    async def live() -> int:
        async with hook(runs).sending():
            await asyncio.to_thread(receiver.asked.wait, 60)
            for event in events[4:]:
                runs.add(event)
            asked = len(receiver.seen)
            receiver.hold.set()
        return asked

    assert asyncio.run(live()) == 1  # all ticks passed while the first part was in flight
    ids = dict.fromkeys(m["id"] for m in receiver.messages)
    assert len(ids) == 90
    assert [int(one.partition("/")[2]) for one in ids] == sorted(int(one.partition("/")[2]) for one in ids)


def test_the_address_is_in_no_log_and_no_message(
    receiver: Receiver, hook: Make, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.answers = [500, 301]
    said: list[str] = []
    asyncio.run(hook(Recorded(told(mill(), 1)), tell=said.append).send())

    class EnoughError(Exception):
        pass

    class Gives(Waits):
        async def sleep(self, seconds: float) -> None:
            raise EnoughError

    nowhere = hook(Recorded(told(mill(), 1)), url="http://127.0.0.1:1/token-4711", tell=said.append, clock=Gives())
    with pytest.raises(EnoughError):
        asyncio.run(nowhere.send())
    kept = "".join(path.name + path.read_text() for path in (tmp_path / "sent").iterdir())
    everything = caplog.text + "".join(said) + kept + repr(nowhere)
    assert "can't be reached" in said[1]
    for part in ("token-4711", "127.0.0.1", SECRET):
        assert part not in everything


@pytest.mark.parametrize(
    "address", ["ftp://x/token-4711", "token-4711", "http://me:token-4711@x/", "http://", "http://x:port/"]
)
def test_an_address_that_can_not_be_used_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ConfigError, match="The webhook's address") as refused:
        Webhook(address, SECRET, "the story", "wsap-sandbox")
    assert "token-4711" not in str(refused.value)


def test_a_webhook_without_a_secret_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a secret"):
        Webhook("http://x/", "", "the story", "wsap-sandbox")


def test_a_failure_of_sending_is_told_once_and_stops_no_story(receiver: Receiver, hook: Make) -> None:
    said: list[str] = []
    runs = Recorded(told(mill(), 1))
    webhook = hook(runs, tell=said.append)
    runs.about = None  # type: ignore[assignment]

    async def live() -> None:
        async with webhook.sending():
            while not said:
                await asyncio.to_thread(receiver.asked.wait, 0.01)

    asyncio.run(live())
    assert said == ["The story can't be sent: TypeError."]


def test_a_damaged_file_is_not_taken_for_a_beginning(receiver: Receiver, hook: Make, tmp_path: Path) -> None:
    runs = Recorded(told(mill(), 1))
    asyncio.run(hook(runs).send())
    (kept,) = (tmp_path / "sent").iterdir()
    kept.write_text("{")
    with pytest.raises(StorageError, match="delete the file to start over"):
        asyncio.run(hook(runs).send())
    assert len(receiver.seen) == 3
