"""Talk and diaries over the wire, from Python, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import hub_kit
import pytest
from wire_server import Served, problem, serving

from wsap_core.host import PluginHost, Registration
from wsap_core.seams.model import OnText, Reply, Request
from wsap_core.specs import BackendSpec
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.client import AsyncNexusClient, DiaryEntry, Exchange, NexusClient, RefusedError
from wsap_nexus.hub.nexus import Settings
from wsap_nexus.server.routes.agents import _idempotent_talk
from wsap_nexus.store.events.agents import DiaryWritten

EVIL = "I am well.\x1b[2J <script>alert(1)</script>"


def answers(request: Request) -> str:
    """Say where it is in the conversation, or decide to look around."""
    return EVIL if "decide" not in request.purpose else '{"reasoning": "", "action": "list_games", "params": {}}'


class Parrot(ScriptedBackend):
    """A model that says one thing to people, when it may."""

    may = asyncio.Event()

    def __init__(self) -> None:
        super().__init__(answers, model="parrot/it")

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        if "decide" not in request.purpose:
            await self.may.wait()
        return await super().complete(request, on_text)


def host() -> PluginHost:
    found = hub_kit.host()
    spec = BackendSpec("parrot", "Says one thing.", lambda _: Parrot())
    found.backends.add(Registration(spec, "tests", "tests"))
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = Settings(seed=7, lobby_seconds=0.05, pace=20.0, games=("quarry",))
    with serving(tmp_path_factory.mktemp("nexus"), host=host(), settings=settings) as nexus:
        yield nexus


def written(served: Served, agent: str) -> int:
    with served.nexus.nexus_store.look() as tx:
        return len(tx.events(kinds=("diary",), agent=agent, limit=100))


async def until(holds: Callable[[], bool], served: Served) -> None:
    """Wait for events of the nexus until something holds."""
    changed = asyncio.Event()
    stop = served.nexus.nexus_store.listen(lambda _: changed.set())
    try:
        while not holds():
            await asyncio.wait_for(changed.wait(), 300)
            changed.clear()
    finally:
        stop()


def test_whoever_is_decided_for_over_the_wire_finds_what_is_said_among_its_messages(served: Served) -> None:
    with served.register("eve") as eve, served.client() as owner:
        path = "/nexus/agents/eve/talk"
        assert eve.get(path).json() == {"exchanges": [], "next": None}
        said = owner.post(path, json={"text": "  Mind the cow. "})
        assert said.json() == {"text": "eve will find it among its messages.", "how": "letter"}
        (message,) = eve.get("/nexus/agents/eve/messages").json()["messages"]
        assert message["message"]["content"] == "Mind the cow."
        owner.post(path, json={"text": "And the dog."})
        # Newest first, a page at a time.
        first = eve.get(path, params={"limit": 1}).json()
        assert [e["said"] for e in first["exchanges"]] == ["And the dog."]
        rest = eve.get(path, params={"limit": 1, "before": first["next"]}).json()
        assert [e["said"] for e in rest["exchanges"]] == ["Mind the cow."]
        assert rest["next"] is None
        assert (rest["exchanges"][0]["how"], rest["exchanges"][0]["reply"]) == ("letter", said.json()["text"])


def test_an_agent_with_a_model_answers_in_its_own_words_and_is_waited_for_with_a_key(served: Served) -> None:
    model = {"agent": "llm", "options": {"model": "parrot/it"}}
    with served.client() as owner:
        owner.post("/nexus/agents", json={"id": "polly", "policies": {"nexus": model}})
        path, headers = "/nexus/agents/polly/talk", {"Idempotency-Key": "how-are-you"}
        asked = {"text": "How are you?"}
        assert owner.post(path, json=asked, headers=headers, params={"wait": 0}).status_code == 202
        served.loop.call_soon_threadsafe(Parrot.may.set)
        answer = owner.post(path, json=asked, headers=headers, params={"wait": 25})
        assert answer.status_code == 200
        assert answer.json() == {"text": EVIL.replace("\x1b", " "), "how": "words"}
        again = owner.post(path, json=asked, headers=headers)
        assert (again.json(), again.headers["Idempotent-Replayed"]) == (answer.json(), "true")
        assert len(owner.get(path).json()["exchanges"]) == 1
        other = owner.post(path, json={"text": "Who are you?"}, headers=headers)
        assert problem(other) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_what_was_said_before_the_nexus_ended_is_not_said_again_for_the_same_key(served: Served) -> None:
    served.register("ida").close()

    async def ask() -> None:
        request = _idempotent_talk(served.nexus, "ida", "Are you there?")
        before = request.intend()
        assert request.recall(before) is None
        reply = await request.do()
        found = request.recall(before)
        assert found is not None
        assert (found.status, found.body) == (reply.status, reply.body)
        assert request.recall(request.intend()) is None  # said anew, it is another talk
        assert _idempotent_talk(served.nexus, "ida", "Are you well?").recall(before) is None

    served.in_loop(ask())


@pytest.mark.slow
def test_a_diary_tells_of_each_stay(served: Served) -> None:
    with served.register("dora") as dora:
        path = "/nexus/agents/dora/diary"
        assert dora.get(path).json() == {"entries": [], "next": None}
        for _ in range(2):
            arrived = dora.post("/nexus/transit/enter", json={"agent_id": "dora", "game": "quarry"}).json()
            assert dora.post(f"{arrived['bridge_url']}/act", json={"name": "dig"}).status_code == 200
            dora.post("/nexus/transit/exit", json={"agent_id": "dora", "mode": "suspend"})
        served.in_loop(until(lambda: written(served, "dora") == 2, served))
        page = dora.get(path, params={"limit": 1}).json()
        (entry,) = page["entries"]
        assert (entry["game"], entry["session"], entry["own_words"]) == ("quarry", arrived["session"]["id"], False)
        assert "quarry" in entry["text"]
        (older,) = dora.get(path, params={"before": page["next"]}).json()["entries"]
        assert older["number"] < entry["number"]


@pytest.mark.slow
def test_clients_talk_and_read_what_was_said_and_written(served: Served) -> None:
    served.register("ann").close()
    with served.nexus.nexus_store.change() as tx:
        for number in range(201):
            tx.note(DiaryWritten(agent_id="ann", game="quarry", text=f"Day {number}.", own_words=True))

    async def later() -> tuple[list[Exchange], list[DiaryEntry]]:
        async with AsyncNexusClient(served.url, served.token) as client:
            assert (await client.talk("ann", "And you?")).how == "letter"
            return [e async for e in client.talked("ann")], [e async for e in client.diary("ann")]

    with NexusClient(served.url, served.token) as client:
        assert client.talk("ann", "Hello", key="k-1").how == "letter"
        assert client.talk("ann", "Hello", key="k-1").how == "letter"
        talked, diary = asyncio.run(later())
        assert [e.said for e in talked] == ["And you?", "Hello"]
        assert list(client.talked("ann")) == talked
        assert [e.text for e in diary] == [f"Day {number}." for number in reversed(range(201))]
        assert list(client.diary("ann")) == diary
        with pytest.raises(RefusedError) as caught:
            client.talk("nobody", "Hello")
        assert (caught.value.told, caught.value.status) == ("UNKNOWN_NAME", 404)


def test_talk_that_can_not_be_is_refused(served: Served) -> None:
    path = "/nexus/agents/bert/talk"
    with served.register("bert") as bert, served.client() as owner, served.client("") as anybody:
        assert problem(anybody.post(path, json={"text": "Hello"})) == (401, "UNAUTHORIZED")
        assert problem(bert.post(path, json={"text": "Hello"})) == (403, "FORBIDDEN")
        for text in ("", "   ", "x" * 2001):
            assert problem(owner.post(path, json={"text": text}))[0] == 400, text[:5]
        for bad in ("before=0", "before=x", "limit=0", "limit=201"):
            for what in ("talk", "diary"):
                assert problem(owner.get(f"/nexus/agents/bert/{what}?{bad}"))[0] == 400, (what, bad)
        for what in ("talk", "diary"):
            assert problem(anybody.get(f"/nexus/agents/bert/{what}")) == (401, "UNAUTHORIZED")
            assert problem(owner.get(f"/nexus/agents/nobody/{what}")) == (404, "UNKNOWN_NAME")
        owner.delete("/nexus/agents/bert")
        assert problem(owner.post(path, json={"text": "Hello"}))[0] == 400
        assert owner.get(path).json()["exchanges"] == []
