"""The events of the nexus: what is stored, read back, and told."""
# ruff: noqa: E501  # one stored event a line

from __future__ import annotations

import importlib.util
import io
import json
import re
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter
from rich.console import Console

from wsap_core.protocol import DeathEvent, RespawnOption
from wsap_nexus.cli.nexus.report import AgentRow
from wsap_nexus.cli.nexus.watching.client import Sight
from wsap_nexus.cli.nexus.watching.screen import overview
from wsap_nexus.store.database import Database
from wsap_nexus.store.events import ENDINGS, KINDS, Names, NexusEvent, OtherEvent, read_event, sentences, why_ended
from wsap_nexus.store.events.agents import AchievementEarned, AgentFailed, SkillGained, Talked
from wsap_nexus.store.events.nexus import GameJoined
from wsap_nexus.store.events.sessions import Died, Entered, ItemFound, ItemMoved, Left, VisitStarted
from wsap_nexus.store.nexus_store import NexusStore

ADA = Names({"ada": "Ada", "bob": "Bob"})

# Bodies as they are stored: kind, game, session, body.
OLD: list[tuple[str, str | None, str | None, dict[str, Any]]] = [
    ("started", None, None, {"agents": 2}),
    ("stopped", None, None, {}),
    ("agent_registered", None, None, {"name": "Ada"}),
    ("agent_renamed", None, None, {"name": "Ada II", "before": "Ada"}),
    ("agent_removed", None, None, {}),
    ("agent_imported", None, None, {"was": "ada", "move": None, "items": 3}),
    ("agent_paused", None, None, {}),
    ("agent_resumed", None, None, {}),
    ("agent_failed", "crafter", "session-1", {"error": "no model answers", "code": "MODEL_ERROR"}),
    ("persona_changed", None, None, {"persona": "kind", "before": ""}),
    ("policy_changed", "*", None, {"policy": {"agent": "llm", "options": {"model": "ollama/x"}}}),
    ("policy_changed", "crafter", None, {"policy": None}),
    ("team_changed", None, None, {"team": None}),
    ("skill_gained", "crafter", "session-1", {"domain": "building", "source": "action:place_table", "times": 1, "gain": 0.01, "level": 0.01}),
    ("skill_gained", None, None, {"domain": "building", "source": "import", "times": 1, "gain": 0.0, "level": 0.4}),
    ("achievement", "crafter", "session-1", {"name": "collect_wood"}),
    ("meta_goal_set", None, None, {"goal": "traveller", "description": "Visit three games."}),
    ("meta_goal_reached", None, None, {"goal": "traveller", "description": "Visit three games.", "reward": {}}),
    ("meta_goal_reached", None, None, {"goal": "g", "description": "d", "reward": {"title": "Hero", "item": None}}),
    ("meta_goal_abandoned", None, None, {"goal": "traveller"}),
    ("message_sent", None, None, {"to": None, "form": "broadcast", "recipients": 3}),
    ("diary", "crafter", "session-1", {"text": "A good day.", "own_words": True}),
    ("diary", "crafter", None, {"text": "A good day.", "own_words": False, "error": "no model", "written": "2026-01-01"}),
    ("talked", None, None, {"by": "a person", "text": "hi", "reply": "hello", "how": "words"}),
    ("whispered", None, None, {"by": "a person", "text": "hi", "reply": "Ada hears it.", "how": "whisper"}),
    ("entered", "crafter", "session-1", {"world": "crafter-000001", "run": "r", "avatar": "a", "respawned": False, "woken": True, "bonuses": {"sturdy": {"health": 2}}, "notes": []}),
    ("left", "crafter", "session-1", {"world": "w", "run": "r", "reason": "step_limit", "steps": 76, "reward": 1.5, "achievements": ["collect_wood"], "done": {"action:do": 3}, "avatar_state": "suspended", "items": []}),
    ("resumed", "crafter", "session-1", {}),
    ("died", "crafter", "session-1", {"death_avatar_id": "avatar-1", "death_cause": "combat", "death_killer": "zombie", "death_location": [1, 2], "death_timestamp": "", "death_items_dropped": {"wood": 1}, "death_xp_lost": 0, "death_respawn_options": [{"id": "bed", "cost": {"xp": 3}}]}),
    ("avatar_changed", "crafter", None, {"world": "w", "avatar": "a", "state": "bound"}),
    ("visiting", None, None, {"run": "r"}),
    ("onward_refused", None, None, {"destination": "atlantis", "why": "There is no game 'atlantis'."}),
    ("brought_home", "crafter", "session-1", {"world": "w", "run": "r", "reason": "game_offline", "error": "it is old", "kept": False}),
    ("transfer_cancelled", None, None, {"transfer": "t", "why": "the nexus ended in the middle of it"}),
    ("transfer_in_doubt", "far", None, {"transfer": "t", "why": "no answer"}),
    ("transfer_settled", "far", None, {"transfer": "t", "outcome": "arrived", "items": ["i"], "to": "lost"}),
    ("item_found", "crafter", "session-1", {"item": {"item_id": "i", "name": "Sword", "category": "weapon", "tier": 3}}),
    ("item_moved", None, None, {"item_id": "i", "name": "Sword", "to": "lost", "to_id": None, "why": "it broke"}),
    ("item_moved", None, None, {"item_id": "i", "to": "escrow", "to_id": None, "why": "it came back"}),
    ("items_moved", None, None, {"items": ["i", "j"], "to": "transfer", "to_id": "t", "why": ""}),
    ("items_refused", "crafter", "session-1", {"items": {"i": "there is an item 'i' already"}}),
    ("game_joined", "far", None, {"url": "http://127.0.0.1:7801", "before": None}),
    ("game_failed", "crafter", None, {"world": "w", "error": "KeyError", "recent": 1}),
    ("game_available", "crafter", None, {"reason": "", "before": "offline"}),
    ("game_maintenance", "crafter", None, {"reason": "new version", "before": "available"}),
    ("game_offline", "crafter", None, {"reason": "It failed 3 times", "before": "available"}),
    ("pruned", None, None, {"runs": 1, "run_events": 2, "nexus_events": 3, "worlds": 0, "bytes": 100}),
    ("prune_failed", None, None, {"error": "There is no room left."}),
]  # fmt: skip
NEW = {"held", "prune_held", "world_crashed", "entry_refused", "listener_failed", "world_rewound", "kept_in_mind"}
WITHOUT_AGENT = {"started", "stopped", "pruned", "prune_failed", "listener_failed"}


def old(kind: str, game: str | None, session: str | None, body: dict[str, Any]) -> NexusEvent:
    agent = None if kind in WITHOUT_AGENT or kind.startswith("game_") else "ada"
    return read_event(kind, body, seq=7, agent_id=agent, game=game, session_id=session, time=1.5)


def test_the_bodies_cover_every_kind_that_was_written_before() -> None:
    assert {kind for kind, *_ in OLD} == KINDS.keys() - NEW


@pytest.mark.parametrize("stored", OLD, ids=lambda stored: stored[0])
def test_stored_events_are_read_whole_and_told_in_a_sentence(stored: Any) -> None:
    event = old(*stored)
    assert type(event) is KINDS[stored[0]]
    assert event.body == stored[3]
    assert (event.seq, event.game, event.session_id, event.time) == (7, stored[1], stored[2], 1.5)
    sentence = event.sentence(ADA)
    assert sentence == sentence.strip()
    assert not sentence.endswith(".") or "." in json.dumps(stored[3])
    assert "_" not in sentence
    assert "{" not in sentence
    assert "None" not in sentence


@pytest.mark.parametrize("stored", OLD, ids=lambda stored: stored[0])
def test_the_union_reads_what_read_event_reads(stored: Any) -> None:
    event = old(*stored)
    union: Any = reduce(or_, KINDS.values())
    adapter: TypeAdapter[NexusEvent] = TypeAdapter(Annotated[union, Field(discriminator="kind")])
    assert adapter.validate_python(event.model_dump(exclude_unset=True)) == event


def test_an_event_of_a_newer_version_is_told_plainly() -> None:
    event = read_event("moon_reached", {"how": "by rocket"}, agent_id="ada", seq=3)
    assert isinstance(event, OtherEvent)
    assert (event.kind, event.body, event.sentence(ADA)) == ("moon_reached", {"how": "by rocket"}, "Ada: moon reached")
    assert isinstance(read_event("left", {"steps": "many"}, agent_id="ada"), OtherEvent)
    kept = read_event("agent_paused", {"by": "eve"}, agent_id="ada")
    assert kept.body == {"by": "eve"}, "what a newer version added to a body stays"


def test_what_is_written_is_read_back_the_same(tmp_path: Path) -> None:
    death = DeathEvent("avatar-1", "fall", respawn_options=[RespawnOption("bed", cost={"xp": 3})])
    written = [
        Died.of(death, agent_id="ada", game="crafter", session_id="s"),
        Entered(agent_id="ada", game="crafter", world="w", run="r", bonuses={"sturdy": 2}, notes=["It rained."]),
        OtherEvent(kind="other", agent_id="ada", data={"a": [1, {"b": None}]}),
    ]
    with Database.open(tmp_path / "nexus.db") as database:
        nexus_store = NexusStore(database)
        heard: list[NexusEvent] = []
        nexus_store.listen(heard.append)
        with nexus_store.change() as tx:
            numbers = [tx.note(event) for event in written]
        with nexus_store.look() as tx:
            found = tx.events()
    assert [event.seq for event in found] == numbers == [1, 2, 3]
    assert [event.to_json() for event in found] == [event.to_json() for event in heard]
    assert [event.body for event in found] == [event.body for event in written]


# --- sentences ----------------------------------------------------------------------------------


def test_one_sentence_serves_others_and_the_agent_itself() -> None:
    left = Left(agent_id="ada", game="crafter", steps=1, reason="kicked", achievements=("collect_wood",))
    assert left.sentence(ADA) == "Ada left crafter after 1 decision: recalled; achieved collect wood"
    assert left.sentence(Names(reader="ada")).startswith("You left crafter after 1 decision")
    talked = Talked(agent_id="ada", text="How are you?", reply="Well.")
    assert talked.sentence(ADA) == "A person said to Ada: How are you? - Ada answered: Well."
    assert talked.sentence(Names(reader="ada")) == "A person said to you: How are you? - You answered: Well."


def test_every_reason_for_which_sessions_end_is_told_in_words() -> None:
    assert {"failed", "world_failed", "game_offline", "jack_out", "exit_game", "death", "finished", "condition",
            "step_limit", "kicked", "interrupted", "run_failed", "silent"} == ENDINGS.keys()  # fmt: skip
    assert why_ended("failed") != why_ended("world_failed")
    assert why_ended("something_newer") == "something newer"


def test_nothing_that_somebody_else_wrote_breaks_a_sentence() -> None:
    hostile = "a\x1b[31mb\nc‮"
    for event in (
        AgentFailed(agent_id=hostile, error=hostile * 200),
        ItemMoved(agent_id="ada", item_id="i", name=hostile, to="lost", why=hostile),
        Died(agent_id="ada", game=hostile, death_cause=hostile, death_killer=hostile),
        OtherEvent(kind=hostile, agent_id="ada"),
    ):
        sentence = event.sentence(Names({"ada": hostile}))
        assert sentence.isprintable()
        assert len(sentence) < 800


def test_the_key_in_an_address_is_never_told() -> None:
    joined = GameJoined(game="far", url="http://127.0.0.1:7801/#key=secret")
    failed = AgentFailed(agent_id="ada", error="http://127.0.0.1:9998/#key=secret can't be opened")
    assert "secret" not in joined.sentence() + failed.sentence()


def gain(domain: str, level: float, by: float = 0.1, session: str = "s") -> SkillGained:
    return SkillGained(agent_id="ada", game="crafter", session_id=session, domain=domain, level=level, gain=by)


def test_gains_in_a_row_are_one_sentence_and_those_that_round_to_nothing_are_left_out() -> None:
    events = [
        gain("building", 0.1),
        gain("building", 0.1001, 0.0001),
        gain("combat", 0.2),
        gain("building", 0.3),
        AchievementEarned(agent_id="ada", game="crafter", session_id="s", name="collect_wood"),
        AchievementEarned(agent_id="bob", game="crafter", session_id="s", name="collect_wood"),
        VisitStarted(agent_id="ada", run="r"),
        gain("combat", 0.3, session="t"),
    ]
    assert [sentence for _, sentence in sentences(events, ADA)] == [
        "Ada improved at building (0.30), combat (0.20)",
        "Ada achieved in crafter: collect wood",
        "Bob achieved in crafter: collect wood",
        "Ada improved at combat (0.30)",
    ]


def test_watching_shows_names_reasons_and_no_data() -> None:
    events = (
        Entered(agent_id="ada", game="crafter", bonuses={"sturdy": {"health": 2}}),
        *(gain("building", 0.1 + n / 1e6, 1e-6) for n in range(50)),
        AgentFailed(agent_id="ada", error="no model answers"),
        ItemFound(agent_id="bob", game="crafter", item={"item_id": "i", "name": "Sword", "properties": {"x": 1}}),
    )
    rows = tuple(
        AgentRow(agent_id, name, state, "nexus", None, None, 0, 0, "llm", why)
        for agent_id, name, state, why in [("ada", "Ada", "paused", "no model answers"), ("bob", "Bobby", "active", "")]
    )
    console = Console(width=140, height=30, record=True, file=io.StringIO())
    console.print(overview(Sight(None, rows, (), events, None), 0, 140, 30, now=0.0))
    shown = console.export_text()
    for text in ("Ada entered crafter (bonuses: sturdy)", "❚❚ paused: no model answers", "Bobby (bob)",
                 "Ada failed and is paused: no model answers", "Bobby brought back from crafter: Sword"):  # fmt: skip
        assert text in shown
    for text in ("0.00", "improved", "{", "ada "):
        assert text not in shown


def test_the_reference_lists_every_event() -> None:
    root = Path(__file__).parents[3]
    spec = importlib.util.spec_from_file_location("write_event_reference", root / "tools" / "write_event_reference.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text(encoding="utf-8")
    assert page == tool.page(), "run: python tools/write_event_reference.py"
    told = {"pulse", "thinking"}  # while they last, and not in the log
    assert set(re.findall(r"^### `(\w+)`$", page, re.MULTILINE)) == KINDS.keys() | told
