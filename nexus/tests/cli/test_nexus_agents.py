"""`wsap nexus agents`: whether the nexus runs or not, and agents as files, whole and damaged."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from cli_nexus_kit import environ_of, nexus, nexus_json, refused, running, until, wsap

from wsap_core.errors import ProtocolVersionError, UnknownNameError, WireError, WsapError
from wsap_core.protocol import PortableItem
from wsap_core.protocol.wire import encode
from wsap_nexus.agents import portable
from wsap_nexus.agents.agent_file import Package, read_package, write_package
from wsap_nexus.agents.metagoals import TEMPLATES, pursuits, set_goal
from wsap_nexus.cli.nexus.connection import NexusHttp
from wsap_nexus.cli.nexus.report import WorldLine, agent_report, report_lines, worlds_of
from wsap_nexus.state import Running
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EntryRequest, Policy, SkillGain
from wsap_nexus.store.events.agents import AgentFailed, AgentResumed, DiaryWritten
from wsap_nexus.store.nexus_store import NexusStore, Transaction


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return environ_of(tmp_path / "home")


# --- commands ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_agents_are_added_held_and_removed_while_no_nexus_runs(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "cleo.md").write_text("Curious, and kind to cows.")
    added = ("agents", "add", "cleo", "--title", "Cleo", "--persona", f"@{tmp_path / 'cleo.md'}")
    assert nexus_json(environ, *added)["agent"] == "cleo"
    shown = nexus_json(environ, "agents", "show", "cleo")
    assert (shown["name"], shown["persona"], shown["place"]) == ("Cleo", "Curious, and kind to cows.", "nexus")
    nexus(environ, "agents", "pause", "cleo")
    assert [a["state"] for a in nexus_json(environ, "agents", "list")] == ["paused"]
    nexus(environ, "agents", "resume", "cleo")
    assert [a["state"] for a in nexus_json(environ, "agents", "list")] == ["active"]
    nexus(environ, "agents", "remove", "cleo", "--yes")
    assert nexus_json(environ, "agents", "list") == []
    code, sentence = refused(environ, "agents", "add", "cleo")
    assert (code, "was removed" in sentence) == (2, True)
    code, sentence = refused(environ, "agents", "resume", "cleo")
    assert (code, "was removed" in sentence) == (2, True)


@pytest.mark.slow
def test_a_person_sets_what_an_agent_keeps_in_mind_and_it_travels(environ: dict[str, str], tmp_path: Path) -> None:
    nexus(environ, "agents", "add", "cleo")
    kept = ("--core-memory", "Lava kills.", "--strategy", "Look first.", "--strategy", "Then act.")
    nexus(environ, "agents", "change", "cleo", *kept)
    shown = nexus_json(environ, "agents", "show", "cleo")
    assert (shown["core_memories"], shown["strategies"]) == (["Lava kills."], ["Look first.", "Then act."])
    nexus(environ, "agents", "export", "cleo", str(tmp_path / "cleo.agent"))
    nexus(environ, "agents", "import", str(tmp_path / "cleo.agent"), "--as", "leo")
    assert nexus_json(environ, "agents", "show", "leo")["strategies"] == ["Look first.", "Then act."]
    nexus(environ, "agents", "change", "cleo", "--strategy", "")
    shown = nexus_json(environ, "agents", "show", "cleo")
    assert (shown["core_memories"], shown["strategies"]) == (["Lava kills."], [])
    code, sentence = refused(environ, "agents", "change", "cleo", "--core-memory", "x" * 201)
    assert (code, "at most 200 fit" in sentence) == (2, True)


HOW = {"model": "scripted/x", "model.reply": "wait", "profile": "brief", "temperature": 0.2}
HOW_TYPED = ("--agent-option", "profile=brief", "--agent-option", "temperature=0.2", "--model-option", "reply=wait")


def policies(environ: dict[str, str], name: str) -> Any:
    return nexus_json(environ, "agents", "show", name)["policies"]


@pytest.mark.slow
def test_how_a_model_is_asked_is_set_where_the_agent_lives_and_by_game(environ: dict[str, str]) -> None:
    nexus(environ, "agents", "add", "cleo", "--model", "scripted/x", *HOW_TYPED)
    assert policies(environ, "cleo") == {"*": {"agent": "llm", "options": HOW}}
    in_echo = "echo=llm,model=scripted/y,profile=full,model.reply=look"
    nexus(environ, "agents", "change", "cleo", "--policy", in_echo, "--policy", "*=random")
    own = {"model": "scripted/y", "profile": "full", "model.reply": "look"}
    assert policies(environ, "cleo") == {
        "*": {"agent": "random", "options": {}},
        "echo": {"agent": "llm", "options": own},
    }
    with running(environ, "--port", "0", "--model", "scripted/x", *HOW_TYPED):
        nexus(environ, "agents", "add", "dan")
        assert policies(environ, "dan") == {"*": {"agent": "llm", "options": HOW}}
        nexus(environ, "agents", "change", "dan", "--model", "scripted/z", "--model-option", "reply=x")
        assert policies(environ, "dan") == {
            "*": {"agent": "llm", "options": {"model": "scripted/z", "model.reply": "x"}}
        }


def changed_and_shown(environ: dict[str, str]) -> None:
    options = ("--title", "Cleo", "--persona", "Kind.", "--policy", "echo=random", "--team", "reds")
    assert nexus_json(environ, "agents", "change", "cleo", *options) == {"agent": "cleo", "token": None}
    shown = nexus_json(environ, "agents", "show", "cleo")
    assert [shown[key] for key in ("name", "persona", "team")] == ["Cleo", "Kind.", "reds"]
    assert {game: policy["agent"] for game, policy in shown["policies"].items()} == {
        "nexus": "wanderer", "echo": "random",
    }  # fmt: skip
    assert "team: reds" in nexus(environ, "agents", "show", "cleo")
    nexus(environ, "agents", "change", "cleo", "--title", "", "--persona", "", "--team", "")
    shown = nexus_json(environ, "agents", "show", "cleo")
    assert [shown[key] for key in ("name", "persona", "team")] == ["cleo", "", None]
    assert "echo" in shown["policies"]
    answer = nexus_json(environ, "agents", "change", "cleo", "--policy", "*=external")
    assert answer["token"]
    assert list(nexus_json(environ, "agents", "show", "cleo")["policies"]) == ["*"]
    for options, code, words in (
        ((), 2, "Say what to change"), (("--memory", "fulltext"), 2, "without a language model"),
        (("--team", "x" * 65), 2, "64"), (("--policy", "echo=nobody"), 2, "nobody"),
    ):  # fmt: skip
        found, sentence = refused(environ, "agents", "change", "cleo", *options)
        assert (found, words in sentence) == (code, True), sentence
    found, sentence = refused(environ, "agents", "change", "nobody", "--team", "reds")
    assert (found, "nobody" in sentence) == (2, True)


@pytest.mark.slow
def test_an_agent_is_changed_while_no_nexus_runs(environ: dict[str, str]) -> None:
    nexus(environ, "agents", "add", "cleo")
    changed_and_shown(environ)


@pytest.mark.slow
def test_an_agent_is_changed_while_it_runs(environ: dict[str, str]) -> None:
    nexus(environ, "agents", "add", "cleo")
    nexus(environ, "agents", "pause", "cleo")
    with running(environ):
        changed_and_shown(environ)


def in_doubt(path: Path) -> str:
    """Put a move of Cleo's into doubt, with her sword, and return its id."""
    with Database.open(path) as database, NexusStore(database).change() as tx:
        tx.mint_item("cleo", PortableItem("sword-1", "sword", "weapon", 1, origin="far"), game="far", session="s")
        transfer = tx.prepare("cleo", "enter", game="far")
        tx.move_items("cleo", ["sword-1"], from_place="escrow", to_place="transfer", to_id=transfer)
        tx.settle(transfer, "unknown", why="The game does not answer.")
    return transfer


@pytest.mark.slow
def test_a_move_in_doubt_is_shown_and_settled_while_no_nexus_runs(environ: dict[str, str]) -> None:
    nexus(environ, "agents", "add", "cleo")
    transfer = in_doubt(Path(environ["WSAP_HOME"]) / "wsap.db")
    assert f"unresolved transfer: {transfer} to far with 1 item" in nexus(environ, "agents", "show", "cleo")
    nexus(environ, "games", "offline", "echo", "--reason", "cleaning")
    told, status = nexus(environ, "status"), nexus_json(environ, "status")
    assert f"  cleo: {transfer} to far with 1 item, since 20" in told
    assert "wsap nexus agents settle NAME" in told
    assert "  echo is offline: cleaning" in told
    assert [(line["agent"], line["transfer"], line["items"]) for line in status["in_doubt"]] == [("cleo", transfer, 1)]
    assert status["closed"] == [{"game": "echo", "status": "offline", "reason": "cleaning"}]
    code, sentence = refused(environ, "agents", "remove", "cleo", "--yes")
    assert "is unresolved" in sentence
    (settled,) = nexus_json(environ, "agents", "settle", "cleo", "--as", "arrived")["settled"]
    assert (settled["transfer"], settled["place"]) == (transfer, "lost")
    shown = nexus_json(environ, "agents", "show", "cleo")
    assert [(item["item"]["item_id"], item["place"]) for item in shown["items"]] == [("sword-1", "lost")]
    assert shown["in_doubt"] == nexus_json(environ, "status")["in_doubt"] == []
    code, sentence = refused(environ, "agents", "settle", "cleo", "--as", "arrived")
    assert (code, "No transfer of 'cleo' is unresolved" in sentence) == (2, True)


@pytest.mark.slow
def test_a_move_in_doubt_is_settled_while_it_runs(environ: dict[str, str]) -> None:
    nexus(environ, "agents", "add", "cleo")
    transfer = in_doubt(Path(environ["WSAP_HOME"]) / "wsap.db")
    with running(environ):
        said = nexus(environ, "agents", "settle", "cleo", "--as", "returned")
        assert said.strip() == f"{transfer} to far is settled. One item is back with cleo."


@pytest.mark.slow
def test_agents_are_added_held_sent_and_removed_while_it_runs(environ: dict[str, str]) -> None:
    with running(environ):
        nexus(environ, "agents", "add", "cleo")
        until(lambda: nexus_json(environ, "agents", "show", "cleo")["sessions"], "cleo's first stay")
        nexus(environ, "agents", "pause", "cleo")
        nexus(environ, "agents", "resume", "cleo")
        sent = nexus_json(environ, "agents", "send", "cleo", "echo", "--steps", "100000", "--goal", "say hello")
        assert (sent["agent"], sent["game"]) == ("cleo", "echo")
        assert sent["session"] in [s["id"] for s in nexus_json(environ, "agents", "show", "cleo")["sessions"]]
        nexus(environ, "agents", "remove", "cleo", "--yes")
        assert [a["id"] for a in nexus_json(environ, "agents", "list")] == ["ada", "bob"]
        for words in (("pause", "nobody"), ("recall", "nobody")):
            code, sentence = refused(environ, "agents", *words)
            assert (code, "no agent called 'nobody'" in sentence) == (2, True), sentence
        code, sentence = refused(environ, "agents", "add", "Mrs Cleo")
        assert (code, "use up to 64 of a-z" in sentence) == (2, True)


@pytest.mark.slow
def test_an_agent_is_called_back_from_its_world(environ: dict[str, str]) -> None:
    # At one decision in two seconds it is still there when it is called.
    with running(environ, "--port", "0", "--workers", "0", "--pace", "0.5", "--game", "echo") as hub:
        until(lambda: any(a["id"] == "ada" and a["session"] for a in hub.status()["agents"]), "ada's stay")
        back = nexus_json(environ, "agents", "recall", "ada")
        assert back["agent"] == "ada"
        closed = {s["id"]: s["reason"] for s in nexus_json(environ, "agents", "show", "ada")["sessions"]}
        assert closed[back["session"]] == "kicked"


@pytest.mark.slow
def test_one_talks_with_an_agent_and_reads_its_diary(environ: dict[str, str]) -> None:
    nexus(environ, "agents", "add", "cleo", "--policy", "*=external")
    assert "cleo has answered nothing yet" in nexus(environ, "agents", "talk", "cleo")
    assert "cleo has written nothing yet" in nexus(environ, "agents", "diary", "cleo")
    with running(environ):
        said = nexus(environ, "agents", "talk", "cleo", "Mind the cow.")
        assert said == "cleo will find it among its messages.\n"
        told = nexus_json(environ, "agents", "talk", "cleo", "And the dog.")
        assert told == {"agent": "cleo", "how": "letter", "text": "cleo will find it among its messages."}
        code, sentence = refused(environ, "agents", "talk", "cleo", "x" * 2001)
        assert (code, "2000" in sentence) == (2, True)
    with Database.open(Path(environ["WSAP_HOME"]) / "wsap.db") as database, NexusStore(database).change() as tx:
        for text in ("Dug a hole.", "Fell in.\n\x1b[31mOuch."):
            tx.note(DiaryWritten(agent_id="cleo", game="quarry", session_id="session-1", text=text, own_words=True))
    # What was said and written is there whether it runs or not; the newest last, or first for a program.
    lines = nexus(environ, "agents", "talk", "cleo").splitlines()
    assert [line.partition("  ")[2] for line in lines[::2]] == ["you: Mind the cow.", "you: And the dog."]
    told = nexus_json(environ, "agents", "talk", "cleo", "--limit", "1")
    assert [e["said"] for e in told["exchanges"]] == ["And the dog."]
    lines = nexus(environ, "agents", "diary", "cleo").splitlines()
    assert lines[1::2] == ["  Dug a hole.", "  Fell in. [31mOuch."]
    entries = nexus_json(environ, "agents", "diary", "cleo")["entries"]
    assert [e["text"] for e in entries] == ["Fell in.\n\x1b[31mOuch.", "Dug a hole."]
    assert {e["game"] for e in entries} == {"quarry"}
    for words in ("talk", "diary"):
        code, sentence = refused(environ, "agents", words, "nobody")
        assert (code, "'nobody'" in sentence) == (2, True)
    code, sentence = refused(environ, "agents", "talk", "cleo", "Hello")
    assert (code, "wsap nexus start" in sentence) == (2, True)


@pytest.mark.slow
def test_what_takes_a_running_nexus_says_so(environ: dict[str, str]) -> None:
    nexus(environ, "agents", "add", "cleo")
    for words in (("send", "cleo", "echo"), ("recall", "cleo")):
        code, sentence = refused(environ, "agents", *words)
        assert (code, "wsap nexus start" in sentence) == (2, True)


@pytest.mark.slow
def test_an_agent_that_comes_over_the_wire_gets_a_token_once(environ: dict[str, str]) -> None:
    token = nexus_json(environ, "agents", "add", "guest", "--policy", "*=external")["token"]
    assert len(token) > 30
    assert nexus_json(environ, "agents", "add", "local")["token"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "Not An Id"), "can't be an agent's id"),
        (("add", "x" * 65), "can't be an agent's id"),
        (("add", "a\x1b[31m"), "can't be an agent's id"),
        (("add", "cleo", "--policy", "crafterr=random"), "crafterr"),
        (("add", "cleo", "--policy", "echo=randomm"), "Did you mean 'random'"),
        (("add", "cleo", "--policy", "echo=olama/x"), "no backend called 'olama'"),
        (("add", "cleo", "--policy", "echo"), "GAME=AGENT"),
        (("add", "nexus"), "is reserved"),
        (("add", "a-person"), "is reserved"),
        (("add", "cleo", "--title", "The Owner"), "is reserved"),
        (("change", "ada", "--title", "A person"), "is reserved"),
        (("add", "cleo", "--model", "nothing/x"), "nothing"),
        (("add", "cleo", "--model", "scripted/x"), "The model scripted/x can't be used: The scripted backend requires"),
        (("add", "cleo", "--memory", "facts"), "--model"),
        (("add", "cleo", "--agent-option", "profile=brief"), "--agent-option has no effect without a language model"),
        (("add", "cleo", "--model-option", "num_ctx=9"), "--model-option has no effect without a language model"),
        (("add", "cleo", "--model", "scripted/x", "--agent-option", "profil=brief"), "Did you mean 'profile'"),
        (("add", "cleo", "--policy", "echo=llm,model=scripted/x,profil=brief"), "Did you mean 'profile'"),
        (("add", "cleo", "--policy", "*=external,profile=brief"), "decides over HTTP has no options"),
        (("add", "cleo", "--model", "scripted/x", "--model-option", "api_key=sk-1"), "must not contain a key"),
        (("add", "cleo", "--persona", "@/no/such/file"), "can't be read"),
        (("show", "nobody"), "nobody"),
        (("remove", "nobody", "--yes"), "nobody"),
        (("export", "nobody", "x.agent"), "nobody"),
        (("import", "/no/such/file"), "can't be read"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(environ: dict[str, str], words: tuple[str, ...], says: str) -> None:
    nexus(environ, "agents", "add", "ada")
    code, sentence = refused(environ, "agents", *words)
    assert code in (2, 6)
    assert says in sentence
    assert "\x1b" not in sentence
    assert [a["id"] for a in nexus_json(environ, "agents", "list")] == ["ada"]


@pytest.mark.slow
def test_an_agent_is_copied_between_running_nexuses(tmp_path: Path) -> None:
    one, two = environ_of(tmp_path / "one"), environ_of(tmp_path / "two")
    file = tmp_path / "ada.agent"
    with running(one):
        until(lambda: nexus_json(one, "agents", "show", "ada")["lifetime_steps"], "ada's first stay")
        nexus_json(one, "agents", "export", "ada", str(file))
        assert [a["id"] for a in nexus_json(one, "agents", "list")] == ["ada", "bob"]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    nexus(two, "agents", "add", "bob")
    with running(two):
        assert nexus_json(two, "agents", "import", str(file))["agent"] == "ada"
        steps = read_package(file).agent.lifetime_steps
        until(lambda: nexus_json(two, "agents", "show", "ada")["lifetime_steps"] > steps, "ada's life there")
        code, sentence = refused(two, "agents", "import", str(file))
        assert (code, "--as NAME" in sentence) == (2, True)


# --- what is in a file, and what a nexus makes of it --------------------------------------------


@pytest.fixture
def ledgers(tmp_path: Path) -> Any:
    """Two nexuses that do not run."""
    with Database.open(tmp_path / "one.db") as one, Database.open(tmp_path / "two.db") as two:
        yield NexusStore(one, wall_clock=lambda: 1_800_000_000.0), NexusStore(two, wall_clock=lambda: 1_800_000_100.0)


SWORD = PortableItem("sword-1", "Sword", "weapon", 3, {"edge": "keen"}, "crafter")


def live(tx: Transaction) -> None:
    """Give ada a life worth taking along."""
    tx.register("ada", name="Ada", persona="Brave.", policies={"nexus": Policy("wanderer"), "*": Policy("random")})
    tx.add_gain("ada", "crafter", "s", SkillGain("crafting", "achievement:place_table", 2, 0.3, 0.3))
    tx.add_achievement("ada", "crafter", "s", "place_table", 2)
    tx.mint_item("ada", SWORD, game="crafter", session="s")
    tx.save_memories("ada", b"\x00what she remembers")
    tx.update_agent("ada", lifetime_steps=120, playtime=12.5)
    tx.note(DiaryWritten(agent_id="ada", game="crafter", text="I built a table.", own_words=True))
    set_goal(tx, "ada", TEMPLATES["artisan"], ["crafter"])
    set_goal(tx, "ada", TEMPLATES["endurance"], ["crafter"])


def told_of(tx: Transaction, name: str) -> dict[str, Any]:
    """All that should be the same wherever an agent is."""
    agent = tx.agent(name)
    return {
        "name": agent.name,
        "persona": agent.persona,
        "steps": agent.lifetime_steps,
        "skills": tx.skills(name),
        "evidence": [tuple(row)[1:] for row in tx.evidence(name)],
        "achievements": [tuple(row)[1:] for row in tx.achievements(name)],
        "mind": tx.memories(name),
        "diary": [e.body["text"] for e in tx.events(agent=name, kinds=("diary",))],
        "goals": [(p.goal, p.state) for p in pursuits(tx, name)],
    }


def escrow(nexus_store: NexusStore, name: str = "ada") -> list[str]:
    with nexus_store.look() as tx:
        return [r.item.item_id for r in tx.items(name, place="escrow")]


def test_an_import_is_the_same_agent_without_its_items(ledgers: tuple[NexusStore, NexusStore], tmp_path: Path) -> None:
    one, two = ledgers
    with one.change() as tx:
        live(tx)
        before = told_of(tx, "ada")
        write_package(tmp_path / "f", portable.pack(tx, "ada"))
    portable.import_agent(two, read_package(tmp_path / "f"), known=("wanderer", "random"))
    with two.look() as tx:
        assert told_of(tx, "ada") == before
        assert dict(tx.agent("ada").policies) == {"nexus": Policy("wanderer"), "*": Policy("random")}
        # A goal that asks for a level goes on from the level that came along; what is counted begins anew.
        progress = {p.goal.id: p.measures()[0][0] for p in pursuits(tx, "ada")}
        assert progress["endurance"] == 0
    assert (escrow(one), escrow(two)) == (["sword-1"], [])


def test_an_agent_that_was_removed_is_imported_under_another_id(
    ledgers: tuple[NexusStore, NexusStore], tmp_path: Path
) -> None:
    one, _ = ledgers
    with one.change() as tx:
        live(tx)
        package = portable.pack(tx, "ada")
        portable.remove(tx, "ada")
    with pytest.raises(portable.ImportRefusedError):
        portable.import_agent(one, package)
    assert portable.import_agent(one, package, agent_id="again").agent_id == "again"
    with one.look() as tx:
        assert tx.items("again") == []
    assert escrow(one) == ["sword-1"]


def test_items_in_an_agents_file_are_refused(
    ledgers: tuple[NexusStore, NexusStore], package: Package, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(forged(lambda d: d.update(items=[encode(SWORD)]), package))
    with pytest.raises(WireError, match="is not a valid agent file: "):
        read_package(tmp_path / "f")


def test_who_decided_for_it_is_taken_over_only_where_that_can_do_no_harm(
    ledgers: tuple[NexusStore, NexusStore], tmp_path: Path
) -> None:
    one, two = ledgers
    evil = {
        "a": Policy("./evil.py:Agent"),
        "b": Policy("llm", {"model": "openai/x", "model.base_url": "http://elsewhere"}),
        "c": Policy("external"),
        "d": Policy("random"),
    }
    with one.change() as tx:
        tx.register("ada", policies=evil)
        write_package(tmp_path / "f", portable.pack(tx, "ada"))
    package = read_package(tmp_path / "f")
    imported = portable.import_agent(two, package, known=("random", "llm"))
    portable.import_agent(two, package, agent_id="trusted", trust=True)
    with two.look() as tx:
        assert dict(tx.agent("ada").policies) == {"d": Policy("random")}
        assert imported.policies_left_out == ("a: ./evil.py:Agent", "b: llm", "c: external")
        assert set(tx.agent("trusted").policies) == set(evil)


def test_an_agent_on_its_way_is_not_removed(ledgers: tuple[NexusStore, NexusStore]) -> None:
    one, _ = ledgers
    with one.change() as tx:
        live(tx)
        tx.prepare("ada", "enter")
    with pytest.raises(portable.RemovalRefusedError), one.change() as tx:
        portable.remove(tx, "ada")
    with one.look() as tx:
        assert tx.agent("ada").state == "active"
    with pytest.raises(UnknownNameError), one.look() as tx:
        portable.pack(tx, "nobody")


# --- files that are none ------------------------------------------------------------------------


def forged(change: Callable[[dict[str, Any]], None], package: Package) -> bytes:
    """A file with something else in it, whose sums are right."""
    data = package.model_dump()
    change(data)
    body = json.dumps(data).encode()
    header = {"wsap-agent": 1, "agent": "ada", "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps(header).encode() + b"\n" + zstandard.compress(body)


@pytest.fixture
def package(ledgers: tuple[NexusStore, NexusStore]) -> Package:
    with ledgers[0].change() as tx:
        live(tx)
        return portable.pack(tx, "ada")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["agent"].update(id="../../etc/passwd"),
        lambda d: d["agent"].update(lifetime_steps=-1),
        lambda d: d["agent"].update(lifetime_steps=2**40),
        lambda d: d["agent"].update(lifetime_steps=True),
        lambda d: d["agent"].update(persona="x" * 10_001),
        lambda d: d["agent"].update(more="?"),
        lambda d: d.update(more="?"),
        lambda d: d.pop("skills"),
        lambda d: d["skills"].update(crafting=7.0),
        lambda d: d["skills"].update(crafting="high"),
        lambda d: d.update(items={}),
        lambda d: d.update(move="not a number"),
        lambda d: d["goals"][0].update(state="rewarded"),
        lambda d: d["evidence"][0].update(gained=float("nan")),
        lambda d: d["diary"][0].update(written="yesterday"),
        lambda d: d["agent"].update(created="long ago"),
        lambda d: d["achievements"][0].update(first="at last"),
        lambda d: d["diary"].extend([d["diary"][0]] * 200_000),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(
    change: Callable[[dict[str, Any]], None], package: Package, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(forged(change, package))
    with pytest.raises(WireError) as refusal:
        read_package(tmp_path / "f")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["goals"][0]["data"].pop("requirements"),
        lambda d: d["goals"][0]["data"].update(requirements=[{"type": "breathe"}]),
        lambda d: d["goals"][0]["data"]["reward"].update(item="Crown", tier=10),
        lambda d: d.update(mind="not base64!"),
    ],
)
def test_what_is_forged_inside_keeps_the_whole_agent_out(
    change: Callable[[dict[str, Any]], None], package: Package, ledgers: tuple[NexusStore, NexusStore], tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(forged(change, package))
    found = read_package(tmp_path / "f")
    two = ledgers[1]
    with pytest.raises(WsapError):
        portable.import_agent(two, found)
    with two.look() as tx:
        assert tx.agents() == []
        assert tx.last_seq() == 0


@pytest.mark.parametrize("kind", ["evidence", "achievements", "goals"])
def test_what_a_file_has_twice_is_named(kind: str, package: Package, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(forged(lambda d: d[kind].append(d[kind][0]), package))
    with pytest.raises(WireError, match=f"the {kind} contain .* twice"):
        read_package(tmp_path / "f")


def test_a_key_that_is_there_twice_is_named(package: Package, tmp_path: Path) -> None:
    body = json.dumps(package.model_dump()).replace('"created":', '"created": "2026-01-01", "created":', 1).encode()
    header = {"wsap-agent": 1, "agent": "ada", "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    (tmp_path / "f").write_bytes(json.dumps(header).encode() + b"\n" + zstandard.compress(body))
    with pytest.raises(WireError, match="the key 'created' twice"):
        read_package(tmp_path / "f")


@pytest.mark.parametrize("many", [b"[],", b"{},", b"0.1,", b'{"a":0},'])
def test_a_small_file_with_very_many_values_is_refused_before_they_are_made(many: bytes, tmp_path: Path) -> None:
    import tracemalloc

    body = b'{"agent":[' + many * ((60 << 20) // len(many)) + b"0]}"
    header = {"wsap-agent": 1, "agent": "ada", "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    (tmp_path / "f").write_bytes(json.dumps(header).encode() + b"\n" + zstandard.compress(body, 1))
    size = len(body)
    del body
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="more values than an agent may have"):
            read_package(tmp_path / "f")
        assert tracemalloc.get_traced_memory()[1] < 2 * size + (1 << 20)
    finally:
        tracemalloc.stop()


def test_a_pipe_is_not_waited_for(environ: dict[str, str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for words in (("agents", "import", str(pipe)), ("agents", "add", "cleo", "--persona", f"@{pipe}")):
        assert "it is a pipe, not a file" in refused(environ, *words)[1]


# --- pieces -----------------------------------------------------------------------------------


class CutOffError(Exception):
    """Stands for a kill."""


def long_lived(package: Package, entries: int = 2500) -> Package:
    return package.model_copy(update={"diary": package.diary * entries})


def test_an_import_leaves_others_their_turn_and_shows_nothing_before_its_end(
    ledgers: tuple[NexusStore, NexusStore], package: Package
) -> None:
    two = ledgers[1]
    seen = []

    def others(seconds: float) -> None:
        assert seconds >= 0.02
        with two.change() as tx:  # nobody holds the lock
            tx.note(DiaryWritten(agent_id="bob", game=None, text="Between.", own_words=True))
            seen.append([agent.id for agent in tx.agents()])

    imported = portable.import_agent(two, long_lived(package), pause=others)
    assert seen == [[]] * len(seen)
    assert len(seen) > 3
    with two.look() as tx:
        assert tx.agent(imported.agent_id).state == "active"
        written = tx.events(agent="ada", kinds=("diary",), limit=10_000)
        assert [event.body["text"] for event in written] == [entry.text for entry in package.diary] * 2500


@pytest.mark.parametrize("at", [1, 3, 5])
def test_an_import_that_was_cut_off_leaves_nothing(
    ledgers: tuple[NexusStore, NexusStore], package: Package, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = ledgers[1]
    long = long_lived(package)
    pieces = 0

    def cut(seconds: float) -> None:
        nonlocal pieces
        pieces += 1
        if pieces == at:
            raise CutOffError

    with monkeypatch.context() as killed:
        killed.setattr(portable, "forget_unfinished", lambda *_, **__: None)  # a killed process cleans nothing up
        with pytest.raises(CutOffError):
            portable.import_agent(two, long, pause=cut)
    with two.look() as tx:
        assert tx.agents() == []
    portable.forget_unfinished(two, pause=lambda seconds: None)  # as a nexus does when it starts
    with two.look() as tx:
        assert tx.find_agent("ada") is None
        assert tx.events(agent="ada", limit=10) == []
        assert tx.evidence("ada") == tx.achievements("ada") == []
    portable.import_agent(two, long, pause=lambda seconds: None)
    with two.look() as tx:
        assert len(tx.events(agent="ada", kinds=("diary",), limit=10_000)) == 2500


def test_of_two_imports_of_one_agent_the_later_wins(ledgers: tuple[NexusStore, NexusStore], package: Package) -> None:
    two = ledgers[1]

    def overtaken(seconds: float) -> None:
        portable.import_agent(two, package, pause=lambda seconds: None)

    with pytest.raises(portable.ImportRefusedError, match="Another import"):
        portable.import_agent(two, long_lived(package), pause=overtaken)
    with two.look() as tx:
        assert len(tx.events(agent="ada", kinds=("diary",), limit=10_000)) == 1


def test_a_diary_too_long_for_a_file_loses_its_oldest_entries(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsap_nexus.agents.agent_file.LARGEST", 20_000)
    assert 0 < (written := write_package(tmp_path / "f", long_lived(package, 1000))) < 1000
    assert len(read_package(tmp_path / "f").diary) == written


def test_a_damaged_file_is_refused_wherever_the_damage_is(package: Package, tmp_path: Path) -> None:
    write_package(tmp_path / "f", package)
    whole = (tmp_path / "f").read_bytes()
    for position in range(0, len(whole), 7):
        (tmp_path / "g").write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            assert read_package(tmp_path / "g") == package, "only what nobody reads may differ"
        except WireError:
            continue
        assert position < whole.index(b"\n"), "damage behind the first line is never passed over"
    for length in (0, 1, 20, len(whole) // 2, len(whole) - 1):
        (tmp_path / "g").write_bytes(whole[:length])
        with pytest.raises(WireError):
            read_package(tmp_path / "g")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"PK\x03\x04zip",
        b"SQLite format 3\x00",
        b"[" * 4000 + b"\n",
        b'{"wsap-agent": "1"}\n',
        bytes(range(99, 256)),
    ],
)
def test_something_else_is_no_agent(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(WireError, match="not an agent file"):
        read_package(tmp_path / "f")


def test_a_newer_file_names_what_to_do(package: Package, tmp_path: Path) -> None:
    data = forged(lambda d: None, package).replace(b'"wsap-agent": 1', b'"wsap-agent": 2')
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(ProtocolVersionError, match="update with: "):
        read_package(tmp_path / "f")


@pytest.mark.slow
def test_a_small_file_that_unpacks_to_much_fills_no_memory(tmp_path: Path) -> None:
    import resource

    bomb = zstandard.compress(b"\x00" * (1 << 30))  # 32 KB that hold a gigabyte
    for size in (100, 255 << 20, 1 << 30):
        header = {"wsap-agent": 1, "agent": "ada", "size": size, "sha256": "0" * 64}
        (tmp_path / "f").write_bytes(json.dumps(header).encode() + b"\n" + bomb)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(WireError):
            read_package(tmp_path / "f")
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        assert grown < 600 << 20


@pytest.mark.slow
def test_a_refused_file_is_one_sentence_at_the_command_line(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"not an agent")
    code, sentence = refused(environ, "agents", "import", str(tmp_path / "f"))
    assert (code, "not an agent file" in sentence) == (5, True)
    nexus(environ, "agents", "add", "ada")
    nexus(environ, "agents", "export", "ada", str(tmp_path / "g"))
    code, sentence = refused(environ, "agents", "import", str(tmp_path / "g"))
    assert (code, "--as NAME" in sentence) == (2, True)
    code, sentence = refused(environ, "agents", "export", "ada", str(tmp_path / "g"))
    assert (code, "--force" in sentence) == (2, True)


@pytest.mark.slow
def test_removing_asks_first(environ: dict[str, str]) -> None:
    nexus(environ, "agents", "add", "ada")
    assert wsap(environ, "nexus", "agents", "remove", "ada", given="n\n").returncode == 1
    assert len(nexus_json(environ, "agents", "list")) == 1
    assert wsap(environ, "nexus", "agents", "remove", "ada", given="y\n").returncode == 0
    assert nexus_json(environ, "agents", "list") == []


def test_one_second_is_one_second(ledgers: Any) -> None:
    with ledgers[0].change() as tx:
        tx.register("ada", name="Ada")
        tx.update_agent("ada", lifetime_steps=1, playtime=1.2)
        assert any("1 decision in games, 1 second;" in line for line in report_lines(agent_report(tx, "ada")))


def test_a_failed_agent_is_shown_with_the_reason_until_it_is_resumed(ledgers: Any) -> None:
    with ledgers[0].change() as tx:
        tx.register("ada", name="Ada")
        tx.update_agent("ada", state="paused")
        tx.note(AgentFailed(agent_id="ada", error="The last 10 decisions were forced."))
        assert "failed: The last 10 decisions were forced." in report_lines(agent_report(tx, "ada"))
        tx.note(AgentResumed(agent_id="ada"))
        assert "failed" not in "".join(report_lines(agent_report(tx, "ada")))


def test_worlds_that_are_no_more_are_not_counted(ledgers: Any) -> None:
    with ledgers[0].change() as tx:
        tx.register("ada", name="Ada")
        gone, asleep, entered = (tx.add_world("crafter", "ada", seed, {}) for seed in range(3))
        tx.keep_world(asleep.id, snapshot=b"state")
        tx.end_world(gone.id)
        tx.open_session("ada", "crafter", entered.id, "avatar-1", "run", EntryRequest())
        assert worlds_of(tx) == [WorldLine("crafter", 2, 1)]


def test_a_name_that_no_path_leads_to_is_an_unknown_one() -> None:
    nexus = NexusHttp(Running(1, "", "http://127.0.0.1:1/", 0.0, ""))
    with pytest.raises(UnknownNameError, match="There is no game called"):
        nexus.put("nexus", "games", "./game.py:Game", "status", body={})
