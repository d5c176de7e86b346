"""Without a token nobody learns what an agent reads, writes, sees, thinks, remembers, or which role it plays."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from dashboard_kit import Served
from fastapi import FastAPI

from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Goal, Observation, TextBlock, View
from wsap_core.seams.context import Context
from wsap_core.seams.model import Request
from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.agents import messages
from wsap_nexus.agents.identity import set_persona, set_policy
from wsap_nexus.agents.metagoals import TEMPLATES, set_goal
from wsap_nexus.http.access.auth import Tokens
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.server.app import include_routes
from wsap_nexus.store.entities import EntryRequest, Policy

roles = pytest.importorskip("wsap_tossim.engine.roles.listed", reason="needs the town (wsap-tossim)")

KINDS = (
    "letter", "persona", "option", "core", "strategy", "goal", "said", "reply", "diary", "reason", "plan", "thought",
    "card", "result", "deed", "failure",
)  # fmt: skip
"""What is private. Each is somewhere in the nexus as a text of its own."""


def mark(kind: str) -> str:
    """Return the text of a kind, which stands nowhere else."""
    return f"xq{kind}zv"


class Cards:
    """A game whose hand nobody but its player sees."""

    game_description = "A hand of cards."
    action_space = ActionSpace((ActionDef("look", "Look at the hand"),))

    def __init__(self, context: Context) -> None:
        self._step = 0

    def reset(self, seed: int | None = None) -> Observation:
        return self.observe()

    def observe(self) -> Observation:
        return Observation({"hand": mark("card")}, step=self._step)

    def act(self, action: Action) -> ActionResult:
        self._step += 1
        return ActionResult(True, mark("result"), 0.5, [mark("deed")], observation=self.observe())

    def render(self) -> View:
        return View((TextBlock(f"The table, after {self._step} looks."),), "Cards")


class Thinker:
    """Looks at its hand, and says why."""

    def initialize(self, game_description: str, action_space: ActionSpace) -> None:
        return None

    def decide(self, observation: Observation) -> Action:
        return Action("look", reasoning=mark("reason"))

    def reflect(self, result: ActionResult) -> None:
        return None

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return [mark("plan")]


class Failing(Thinker):
    """Fails, and says too much."""

    def decide(self, observation: Observation) -> Action:
        raise RuntimeError(mark("failure"))


def model(context: Context) -> ScriptedBackend:
    """Return a model that says something private to everything."""

    def answer(request: Request) -> str:
        said = str(request.messages)
        if "diary" in said.lower():
            return mark("diary")
        if mark("said") in said:
            return mark("reply")
        action = "look" if Cards.game_description in said else "wait_for_game"  # in vain it would be paused there
        return json.dumps({"reasoning": mark("thought"), "action": action, "params": {}})

    return ScriptedBackend(answer, model="mind/it")


def host() -> PluginHost:
    found = PluginHost.discovered()
    abilities = ("render", "seed")
    found.games.add(Registration(AdapterSpec("cards", "Cards.", Cards, abilities=abilities), "tests", "tests"))
    for name, agent in (("thinker", Thinker), ("failing", Failing)):
        found.agents.add(Registration(AgentSpec(name, "Plays.", agent), "tests", "tests"))
    found.backends.add(Registration(BackendSpec("mind", "Thinks.", model), "tests", "tests"))
    return found


def prepare(nexus: Nexus) -> None:
    outside = {"nexus": Policy("external")}
    with nexus.nexus_store.change() as tx:
        tx.register("ada", policies={**outside, "*": Policy("tossim-player")})
        tx.register("bob", policies={**outside, "*": Policy("tossim-player")})
        tx.register("eve", policies={"*": Policy("external")})
        tx.register("tom", policies={**outside, "*": Policy("thinker")})
        tx.register("fay", policies={**outside, "*": Policy("failing")})
        tx.register("mia", policies={"*": Policy("llm", {"model": "mind/it", "memory": "fulltext"})}, name="Mia")
        options = {"model": "mind/it", "memory": "fulltext", "instructions": mark("option")}
        set_policy(tx, "mia", "echo", Policy("llm", options), nexus.host)
        set_persona(tx, "mia", mark("persona"))
        tx.update_agent("mia", lore={"core_memories": [mark("core")], "strategies": [mark("strategy")]})
        set_goal(tx, "ada", TEMPLATES["achiever"], ("tossim",))
        messages.send(tx, "ada", "direct", mark("letter"), to="bob")


PAGE = "/nexus/events?also=pulse&also=thinking&sentences=true"
"""The stream from which the page is told."""


@dataclass
class Scene:
    """A nexus full of secrets."""

    served: Served
    agents: tuple[str, ...]
    sessions: tuple[str, ...]
    runs: tuple[str, ...]
    worlds: tuple[str, ...]
    town: str
    """The world in which roles are in play."""
    roles: frozenset[str]
    """The names of the roles in it."""
    playing: str
    """The run of a game that goes on."""
    decided: dict[tuple[str, str], tuple[str, ...]]
    """The numbers of the steps and calls of each run, by its id and `steps` or `calls`."""
    last: int
    """The number of the newest event."""

    def gets(self) -> list[str]:
        """Return every path that can be read, from the OpenAPI document."""
        app = FastAPI()
        include_routes(app)
        paths = [path for path, at in app.openapi()["paths"].items() if "get" in at]
        assert len(paths) > 30
        return [filled for path in paths for filled in self._filled(path)]

    def _filled(self, path: str) -> Iterator[str]:
        known = {"agent_id": self.agents, "session_id": self.sessions, "run_id": self.runs, "world_id": self.worlds,
                 "game": ("cards", "tossim"), "name": ("picture",), "pass_id": ("pass-1",)}  # fmt: skip
        name = path.partition("{")[2].partition("}")[0]
        if name == "seq":  # runs/RUN/steps/{seq}; 0 is of another kind
            known["seq"] = ("0", *self.decided[path.split("/")[-3], path.split("/")[-2]])
        if not name:
            yield {"/nexus/events": f"/nexus/events?after=0&until={self.last}"}.get(path, path)
            if path == "/nexus/events":
                yield PAGE
                yield f"{path}?after=0&until={self.last}&sentences=true"
            return
        for value in known[name]:
            yield from self._filled(path.replace(f"{{{name}}}", value))

    def read(self, path: str, token: str | None) -> bytes:
        """Return everything that comes from a path, of a stream what comes until the newest event."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if path == PAGE:
            return self._live(headers)
        wait = "&" if "?" in path else "?"
        return self.served.ask(f"{path}{wait}wait=0", headers=headers)[2]

    def _live(self, headers: dict[str, str]) -> bytes:
        sent = {**headers, "Last-Event-ID": "0"}
        request = urllib.request.Request(self.served.url + PAGE.lstrip("/"), headers=sent)
        came = b""
        with urllib.request.urlopen(request, timeout=300) as answer:
            # Of the steps of agents in worlds, at least one message.
            while b"event: pulse" not in came:
                came += answer.readline()
            return came + answer.readline()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    settings = Settings(pace=20.0, lobby_seconds=0.05)
    with Served(tmp_path_factory.mktemp("private"), settings, prepare=prepare, host=host) as served:
        yield served.within(filled(served))


async def filled(served: Served) -> Scene:
    """Have agents talk, write, play to the end, play on, and fail."""
    nexus = served.nexus
    goals = EntryRequest(goals=(mark("goal"),), steps=3)
    for agent in ("mia", "tom"):
        await nexus.enter(agent, "cards", goals)
        await nexus.await_exit(agent)
    await nexus.enter("fay", "cards", EntryRequest())
    while not nexus.agent_context.words.diary("mia"):  # noqa: ASYNC110 nothing tells of it
        await asyncio.sleep(0)
    await nexus.agent_context.words.talk("mia", mark("said"))
    await nexus.enter("mia", "cards", EntryRequest(goals=(mark("goal"),)))
    playing = (await nexus.enter("tom", "cards", EntryRequest())).session.run_id
    stays = await asyncio.gather(*(nexus.enter(agent, "tossim", EntryRequest()) for agent in ("ada", "bob")))
    for agent in ("ada", "bob"):  # the game does not end while it is looked at
        while nexus.live.sessions[agent].last is None:  # noqa: ASYNC110 nothing tells of it
            await asyncio.sleep(0)
        nexus.pause(agent)
    world: Any = nexus.live.ports[stays[0].session.run_id]
    with nexus.nexus_store.look() as tx:
        agents = tuple(agent.id for agent in tx.agents())
        sessions = tuple(s.id for agent in agents for s in tx.sessions(agent_id=agent))
        last = tx.last_seq()
    runs = tuple(record.id for record in nexus.store.repository.list_runs())
    players = world.world.adapter.game.state.players
    worlds = tuple(sorted({stay.session.world_id for stay in nexus.live.sessions.values()}))
    names = frozenset(player.role.name for player in players)
    nexus.store.writer.flush()
    decided = {
        (run, f"{kind}s"): tuple(str(seq) for seq, _ in nexus.store.repository.find_events(run, kind))
        for run in runs
        for kind in ("step", "call")
    }
    assert any(decided[run, "calls"] for run in runs)
    return Scene(served, agents, sessions, runs, worlds, stays[0].session.world_id, names, playing, decided, last)


def found_in(texts: dict[str, bytes], scene: Scene) -> dict[str, list[str]]:
    """Return private thing -> the paths from which it came."""
    wanted = {kind: mark(kind).encode() for kind in KINDS}
    found = {kind: [path for path, text in texts.items() if secret in text] for kind, secret in wanted.items()}
    about = [
        path for path in texts if "/nexus/agents/ada" in path or "/nexus/worlds/" in path or "/nexus/runs/" in path
    ]
    found["role"] = [p for p in about if any(f'"{r}"' in texts[p].decode() or f" the {r}" in texts[p].decode()
                                             for r in scene.roles)]  # fmt: skip
    return {kind: paths for kind, paths in found.items() if paths}


@pytest.mark.slow
def test_with_the_token_of_whoever_runs_it_everything_can_be_read(scene: Scene) -> None:
    texts = {path: scene.read(path, scene.served.token) for path in scene.gets()}
    assert set(found_in(texts, scene)) == {*KINDS, "role"}, "or the tests below would find nothing anywhere"


@pytest.mark.slow
def test_without_a_token_nothing_private_comes_out_on_any_route(scene: Scene) -> None:
    assert found_in({path: scene.read(path, None) for path in scene.gets()}, scene) == {}


@pytest.mark.slow
def test_with_the_token_of_another_agent_nothing_private_comes_out_either(scene: Scene) -> None:
    token = scene.served.do(lambda: Tokens(scene.served.nexus.nexus_store, scene.served.token).issue("eve"))
    assert found_in({path: scene.read(path, token) for path in scene.gets()}, scene) == {}


@pytest.mark.slow
def test_without_a_token_a_spectator_sees_who_is_where_and_what_a_game_draws_for_all(scene: Scene) -> None:
    read = scene.served.read_public
    assert {a["id"] for a in read("/nexus/agents")["agents"]} == set(scene.agents)
    assert read("/nexus/agents/ada")["agent"]["place"] == "world"
    drawn = read(f"/nexus/worlds/{scene.town}/view")["view"]
    seats = next(block for block in drawn["blocks"] if block["kind"] == "seats")["seats"]
    assert len(seats) == 15
    called = {seat["who"]: seat["called"] for seat in seats if seat["called"]}
    assert called == {"ada": "ada", "bob": "bob"}, "who sits where is public, as the list of those who are there"
    for seat in seats:
        assert not any(role in json.dumps(seat) for role in scene.roles - {"Mayor"}) or seat["state"] == "out", seat
    overview = read("/nexus/overview")
    assert {stay["agent"] for world in overview["worlds"] for stay in world["stays"]} == {"ada", "bob", "mia", "tom"}
    assert {"entered", "left", "agent_registered"} <= {event["kind"] for event in overview["recent"]}
    sentences = {event["sentence"] for event in overview["recent"]}
    assert any(sentence.startswith("Mia left cards after 3 decisions") for sentence in sentences), sentences


def test_who_acts_in_a_game_of_hidden_roles_is_not_told_without_a_token(scene: Scene) -> None:
    """By night only some roles act, so that counts of steps tell who has one of them."""
    for world in scene.served.read_public("/nexus/overview")["worlds"]:
        for stay in world["stays"]:
            assert not {"steps", "action", "reward"} & set(stay)
    pulse = scene._live({}).decode()
    assert '"agents":[]' in pulse.partition("event: pulse")[2]


def test_what_happened_to_an_agent_is_told_whole_to_itself_and_to_others_as_to_the_public(scene: Scene) -> None:
    nexus = scene.served.nexus
    tokens = Tokens(nexus.nexus_store, scene.served.token)
    own, other = (scene.served.do(lambda agent=agent: tokens.issue(agent)) for agent in ("mia", "eve"))
    path = f"/nexus/events?after=0&until={scene.last}&agent=mia"
    assert mark("diary").encode() in scene.read(path, own)
    assert scene.read(path, other) == scene.read(path, None)
    letters = f"/nexus/events?after=0&until={scene.last}&kind=message_sent"
    bob = scene.served.do(lambda: tokens.issue("bob"))
    assert b'"to":"bob"' in scene.read(letters, bob), "whoever gets a letter is told who it is from"
    assert b'"to":"bob"' not in scene.read(letters, other)


@pytest.mark.slow
def test_every_route_that_changes_something_needs_a_token(scene: Scene) -> None:
    app = FastAPI()
    include_routes(app)
    tried = 0
    for path, operations in app.openapi()["paths"].items():
        for method in set(operations) - {"get"}:
            for filled_path in list(scene._filled(path))[:1]:
                status, _, _ = scene.served.ask(filled_path, method=method.upper(), body={})
                assert status == 401, (method, filled_path)
                tried += 1
    assert tried > 20
