"""What models are shown of a world: its own frames, over the wire, in the log, and had again from there."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import crafter
import numpy as np
import pytest
from life_kit import conversations
from llm_server import ModelServer, Say
from llm_server.says import Card
from PIL import Image

from wsap_core import PluginHost
from wsap_core.cli import main
from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionSpace, Goal, ImageBlock, Observation, View
from wsap_core.seams.agent import GetView
from wsap_core.seams.context import derive_seed
from wsap_core.seams.model_errors import BadRequestError
from wsap_nexus.api import play, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.journal import read_picture, recorded_text
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.upkeep.export import export_jsonl

SEED = 11
STEPS = 6
FRAME = 90
ACTIONS = ("move_left", "move_up", "do", "move_right", "noop", "move_down")
OPTIONS: dict[str, Any] = {"plan": "no", "max_tokens": 50}
ROOM: dict[str, Any] = {"model.num_ctx": 16384}
"""A context for several pictures."""


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


@pytest.fixture(autouse=True)
def addresses(server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OLLAMA_HOST", server.address)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    server.models["seer"] = Card(32768, ("completion", "vision"))
    server.default = Walker()


class Walker:
    """A model that takes the next of the actions, whatever it sees."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, body: Any) -> Say:
        self.count += 1
        return Say(json.dumps({"action": ACTIONS[(self.count - 1) % len(ACTIONS)], "params": {}, "reasoning": ""}))


def shown_by_ollama(body: Any) -> list[list[bytes]]:
    return [[base64.b64decode(image, validate=True) for image in m.get("images", ())] for m in body["messages"]]


def shown_by_openai(body: Any) -> list[list[bytes]]:
    found = []
    for message in body["messages"]:
        parts = [] if isinstance(message["content"], str) else message["content"]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        assert all(url.startswith("data:image/png;base64,") for url in urls)
        found.append([base64.b64decode(url.partition(",")[2], validate=True) for url in urls])
    return found


def chats(server: ModelServer) -> list[Any]:
    return [r.body for r in server.requests if r.path in ("/api/chat", "/v1/chat/completions")]


def pixels(png: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(png), formats=("PNG",)) as picture:
        return np.asarray(picture.convert("RGB"))


def played(server: ModelServer, model: str, *, database: str | None = None, **options: Any) -> Any:
    return play(
        "crafter",
        "llm",
        seed=SEED,
        steps=STEPS,
        options={"frame_size": FRAME},
        agent_options={**OPTIONS, "model": model, "pictures": "yes", **options},
        record=database is not None,
        database=database,
    )


@pytest.mark.parametrize(("model", "shown"), [("ollama/llava:7b", shown_by_ollama), ("openai/seer", shown_by_openai)])
@pytest.mark.slow
def test_a_model_is_shown_the_games_own_frame_of_each_moment(
    server: ModelServer, model: str, shown: Callable[[Any], list[list[bytes]]]
) -> None:
    played(server, model)
    env = crafter.Env(size=(FRAME, FRAME), seed=derive_seed(SEED, 0))
    env.reset()
    bodies = chats(server)
    assert len(bodies) == STEPS
    names = list(crafter.constants.actions)
    for number, body in enumerate(bodies):
        *before, now = shown(body)
        assert not any(before), "older frames are left out"
        (png,) = now
        assert (pixels(png) == env.render()).all(), f"frame {number}"
        env.step(names.index(ACTIONS[number]))


def test_as_many_of_the_newest_frames_stay_as_were_asked_for(server: ModelServer) -> None:
    played(server, "ollama/llava:7b", pictures=3, **ROOM)
    bodies = chats(server)
    newest = [shown_by_ollama(body)[-1][0] for body in bodies]
    assert len(set(newest)) == STEPS
    for number, body in enumerate(bodies):
        seen = [
            pictures for m, pictures in zip(body["messages"], shown_by_ollama(body), strict=True) if m["role"] == "user"
        ]
        wanted = [[png] for png in newest[max(0, number - 2) : number + 1]]
        assert [pictures for pictures in seen if pictures] == wanted
        assert seen[-len(wanted) :] == wanted


def test_a_frame_that_is_left_out_leaves_the_prompt_before_it_as_it_was(server: ModelServer) -> None:
    played(server, "openai/seer", window=16)
    for before, after in zip(chats(server), chats(server)[1:], strict=False):
        *same, last = before["messages"]
        assert after["messages"][: len(same)] == same
        text, picture = last["content"]
        assert (text["type"], picture["type"]) == ("text", "image_url")
        older = after["messages"][len(same)]
        assert older["role"] == "user"
        assert isinstance(older["content"], str), "without its frame"
        assert set(older["content"].splitlines()) <= set(text["text"].splitlines())


def test_being_drawn_does_not_change_what_happens(server: ModelServer) -> None:
    seeing = played(server, "ollama/llava:7b")
    server.default = Walker()
    blind = played(server, "ollama/llava:7b", pictures="no")
    assert seeing.trajectory_hash == blind.trajectory_hash
    assert not any(shown_by_ollama(chats(server)[-1]))


def test_a_run_holds_each_frame_once_and_names_it_where_it_was_shown(server: ModelServer, database: str) -> None:
    wait = json.dumps({"action": "noop", "params": {}})
    # Asked again, a model sees the same frame.
    server.default = lambda body: Say("Hm." if len(chats(server)) in (1, 3) else wait)
    summary = played(server, "ollama/llava:7b", database=database, pictures=2, **ROOM)
    assert [sum(map(len, shown_by_ollama(body))) for body in chats(server)] == [1, 1, 2, 2, 2, 2, 2, 2]
    sent = [[png for message in shown_by_ollama(body) for png in message][-1] for body in chats(server)]
    with open_store(database) as store:
        events = list(Repository(store.database).read_events(str(summary.run)))
        lines = list(export_jsonl(Repository(store.database), str(summary.run)))
    kept = dict(read_picture(e.data) for e in events if e.kind == "picture")
    assert len([e for e in events if e.kind == "picture"]) == len(kept) == len(set(sent)) == STEPS
    assert sorted(kept.values()) == sorted(set(sent))
    assert all(hashlib.sha256(png).hexdigest() == name for name, png in kept.items())
    assert sum(line.count(base64.b64encode(sent[0]).decode()) for line in lines) == 1
    calls = conversations(e.data for e in events if e.kind == "call")
    for conversation, png in zip(calls, sent, strict=True):
        newest = next(message for message in reversed(conversation) if not isinstance(message["content"], str))
        assert recorded_text(newest).endswith(f"\n[image {FRAME}x{FRAME}]")
        assert kept[newest["content"][1]["sha256"]] == png


@pytest.mark.slow
def test_a_run_with_pictures_is_played_again_without_asking(server: ModelServer, database: str) -> None:
    first = played(server, "ollama/llava:7b", database=database, pictures=2, **ROOM)
    asked = len(server.requests)
    with open_store(database) as store:
        again, past = replies_of(str(first.run), store)
        with start(again, PluginHost.discovered(), store, past=past) as session:
            second = asyncio.run(session.play())
        before, after = (
            [(e.kind, e.body) for e in store.repository.read_events(str(run), kinds=("step", "picture"))]
            for run in (first.run, second.run)
        )
    assert len(server.requests) == asked
    assert second.trajectory_hash == first.trajectory_hash
    assert {kind for kind, _ in before} == {"step", "picture"}
    assert after == before


@pytest.mark.parametrize("snapshot_every", [3, 0])
@pytest.mark.parametrize("stop", [2, 4, 5])
@pytest.mark.slow
def test_a_run_that_is_gone_on_with_shows_what_an_undisturbed_one_shows(
    stop: int, snapshot_every: int, server: ModelServer, database: str
) -> None:
    whole = played(server, "ollama/llava:7b", pictures=3, **ROOM)
    undisturbed = chats(server)
    assert [sum(map(len, shown_by_ollama(body))) for body in undisturbed] == [1, 2, 3, 3, 3, 3]
    server.default = Walker()
    options = {**OPTIONS, "model": "ollama/llava:7b", "pictures": 3, **ROOM}
    plan = RunPlan("crafter", (SeatPlan("seat-1", "llm", options),), SEED, STEPS, {"frame_size": FRAME}, snapshot_every)
    controls = Controls()

    def stopping(step: Any) -> None:
        if step.step == stop:
            controls.stop()

    with (
        open_store(database) as store,
        start(plan, PluginHost.discovered(), store, controls=controls, observers=[stopping]) as session,
    ):
        asyncio.run(session.play())
    resumed = resume_run(database=database)
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert chats(server)[STEPS:] == undisturbed  # not one frame differs, and no reply was bought twice
    with open_store(database) as store:
        events = list(store.repository.read_events(str(resumed.run), kinds=("picture",)))
    assert len({read_picture(e.data)[0] for e in events}) == STEPS
    # Those before the last snapshot are not looked through again, so that one may be there twice.
    assert len(events) == STEPS or snapshot_every


# --- where there is nothing to see, or nobody who sees ---------------------------------------------


def test_a_world_without_pictures_is_told_once_and_played_by_the_text(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.default = Say('{"action": "wait", "params": {}}')
    options = {**OPTIONS, "model": "ollama/llava:7b", "pictures": "yes"}
    summary = play("echo", "llm", steps=5, options={"length": 10}, agent_options=options, record=False)
    assert summary.steps == 5
    told = [record.getMessage() for record in caplog.records if "pictures" in record.getMessage()]
    assert len(told) == 1
    assert "provides no pictures, so the model plays by text alone" in told[0]
    assert not any(map(any, map(shown_by_ollama, chats(server))))


def test_a_world_whose_frames_are_switched_off_is_refused_under_strict(server: ModelServer) -> None:
    with pytest.raises(UsageError, match="Crafter provides no pictures, but strict play was requested"):
        play(
            "crafter",
            "llm",
            steps=3,
            options={"frame_size": 0},
            agent_options={**OPTIONS, "model": "ollama/llava:7b", "pictures": "yes", "strict": "yes"},
            record=False,
        )
    assert chats(server) == []


def test_a_model_that_can_not_see_is_refused_before_it_is_asked(server: ModelServer) -> None:
    with pytest.raises(UsageError, match=r"ollama/qwen3:8b does not accept images; omit --pictures"):
        played(server, "ollama/qwen3:8b")
    assert chats(server) == []


@pytest.mark.parametrize(
    ("model", "say"),
    [
        ("openai/seer", Say(status=400, error="Invalid content type. image_url is only supported by certain models.")),
        (
            "openai/seer",
            Say(status=500, error="image input is not supported - hint: you may need to provide the mmproj"),
        ),
        ("ollama/llava:7b", Say(status=500, error="this model is missing data required for image input")),
    ],
)
def test_a_server_that_takes_no_pictures_is_asked_once_and_answers_in_a_sentence(
    server: ModelServer, model: str, say: Say
) -> None:
    server.default = say
    with pytest.raises(BadRequestError, match=r"does not accept images here .*; omit --pictures") as caught:
        played(server, model)
    assert len(chats(server)) == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", ["perhaps", "-1", 101, 1.5])
def test_a_number_of_pictures_that_makes_no_sense_is_refused(given: Any) -> None:
    from wsap_core.errors import ConfigError

    with pytest.raises(ConfigError, match="option pictures"):
        play("echo", "llm", agent_options={"model": "scripted/x", "pictures": given}, record=False)


# --- who has things drawn, and whose view it is ----------------------------------------------------


class Watcher:
    """An agent that looks before every other decision."""

    def __init__(self) -> None:
        self.decided = 0
        self.views: list[tuple[int, View | None]] = []

    def see_with(self, get_view: GetView) -> None:
        self.get_view = get_view

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    async def decide(self, observation: Observation) -> Action:
        if self.decided % 2 == 0:
            self.views.append((self.decided, await self.get_view()))
        self.decided += 1
        return Action("wait")

    def reflect(self, result: Any) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []


def test_nothing_is_drawn_for_an_agent_that_does_not_look() -> None:
    from wsap_core.builtin.echo import EchoWorld
    from wsap_core.specs import AdapterSpec

    drawn: list[int] = []

    class Drawing(EchoWorld):
        def render(self) -> View:
            drawn.append(self.observe().step)
            return View((ImageBlock.from_png(b"", width=1, height=1),), f"step {self.observe().step}")

    spec = AdapterSpec("drawing", "", Drawing, abilities=("seed", "render"))
    play(spec, "random", steps=5, record=False)
    assert drawn == []
    watcher = Watcher()
    play(spec, lambda: watcher, steps=5, record=False)
    assert drawn == [0, 2, 4]
    assert [(at, view.title) for at, view in watcher.views if view] == [(0, "step 0"), (2, "step 2"), (4, "step 4")]


def test_nothing_is_drawn_for_steps_that_a_model_is_not_asked_about(server: ModelServer) -> None:
    from wsap_core.builtin.echo import EchoWorld
    from wsap_core.specs import AdapterSpec

    drawn: list[int] = []
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "PNG")

    class Drawing(EchoWorld):
        def render(self) -> View:
            drawn.append(self.observe().step)
            return View((ImageBlock.from_png(file.getvalue(), width=8, height=8),))

    spec = AdapterSpec("drawing", "", Drawing, abilities=("seed", "render"))
    server.default = Say('{"action": "wait", "params": {}, "times": 3, "until": "blocked"}')
    options = {**OPTIONS, "model": "ollama/llava:7b", "pictures": "yes", "max_steps": 3}
    play(spec, "llm", steps=9, options={"length": 20}, agent_options=options, record=False)
    assert drawn == [0, 3, 6]
    assert len(chats(server)) == 3


@pytest.mark.slow
def test_looking_back_at_calls_names_pictures_by_their_size(
    server: ModelServer, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.default = Say('{"action": "noop", "params": {}, "reasoning": "\x1b[2Jrest"}')
    played(server, "ollama/llava:7b", database=database, **ROOM)
    capsys.readouterr()
    assert main(["replay", "last", "--calls", "--database", database]) == 0
    printed = capsys.readouterr().out
    assert printed.count(f"    [image {FRAME}x{FRAME}]\n") == STEPS
    assert printed.count("You are an agent playing Crafter.") == 1
    assert "\x1b" not in printed
    assert main(["replay", "last", "--calls", "--json", "--from", "2", "--to", "3", "--database", database]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["call"] for row in rows] == [2, 3]
    # All is as before up to the step of which the frame is left out now.
    assert [row["shared"] for row in rows] == [1, 3]
    assert [[m["role"] for m in row["messages"]] for row in rows] == [["user", "assistant", "user"]] * 2
    newest, older = (rows[at]["messages"][place]["text"].splitlines() for at, place in ((0, 2), (1, 0)))
    assert newest[-1] == f"[image {FRAME}x{FRAME}]"
    assert older[0] == newest[0]
    assert set(older) < set(newest[:-1]), "what changed is left of an older step"
    assert all(json.loads(row["reply"], strict=False)["action"] == "noop" for row in rows)
    assert all(row["prompt_tokens"] > 0 for row in rows)


def test_looking_back_at_calls_where_no_model_was_asked_says_so(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    play("echo", "random", steps=2, database=database)
    assert main(["replay", "last", "--calls", "--database", database]) == 0
    assert capsys.readouterr().out == "There are no model calls in this range.\n"
