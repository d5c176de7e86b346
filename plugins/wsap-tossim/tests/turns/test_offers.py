"""What a seat is told that it can do: what its role can, under the rules in force, and nothing that does nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from turn_kit import Scene

from wsap_core.cli.app import run
from wsap_core.worlds.world import World
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.options import TownOptions, seat_name
from wsap_tossim.perception.desk import look_up
from wsap_tossim.plugin import wsap_adapters
from wsap_tossim.world import Town


def offered(role: str, **options: Any) -> set[str]:
    """Return what the seat of somebody with a role is told that it can do, by the world as the runtime opens it."""
    others = [name for name in ("Citizen", "Godfather", "Sheriff", "Doctor", "Lookout", "Escort") if name != role]
    town = Town(TownOptions.read({"roles": [role, *others], **options}), 1)
    player = next(p.number for p in town.game.state.players if p.role.name == role)
    (spec,) = wsap_adapters()
    return set(World(spec, town).open_seat(seat_name(player)).action_space.listed().names)


def test_a_jailor_is_not_told_how_to_maul() -> None:
    names = offered("Jailor")
    assert {"jail", "execute", "speak", "whisper", "vote", "guilty", "say", "check_will", "write_will"} <= names
    assert not names & {"maul", "kill", "interrogate", "reveal", "seance", "bid_1"}
    assert not names & {"jack_out", "emote", "look", "inspect_self"}, "the town has no bodies"
    assert "reveal" in offered("Mayor")
    assert "seance" in offered("Medium")
    assert "bid_1" in offered("Jailor", floor="bids")


@pytest.mark.parametrize("name", list(ROLES))
def test_each_role_is_told_of_its_own_deeds_and_of_nobody_elses(name: str) -> None:
    role = ROLES[name]
    deeds = {verb.value for other in ROLES.values() for verb in other.verbs}
    assert offered(name) & deeds == {verb.value for verb in role.verbs}


def test_what_does_nothing_under_the_rules_is_not_offered() -> None:
    names = offered("Mayor", rules="parity")
    assert not names & {"speak", "whisper", "guilty", "innocent", "abstain", "unvote", "reveal", "say"}
    assert not names & {"check_will", "view_will", "write_will", "write_death_note"}
    assert {"vote", "wait"} <= names
    assert "forge" not in offered("Forger", wills="no")
    assert "seance" not in offered("Medium", night_talk_rounds=0)
    assert "unvote" not in offered("Sheriff", lynching="ballot")


@pytest.mark.slow
def test_a_model_reads_what_its_role_can_do(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wsap_nexus", reason="needs the runtime (wsap-nexus)")
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    seats = ["--seat", "player-1=scripted/x", "--agent-option", "model.reply=wait", "--steps", "1"]
    assert run(["play", "tossim", "--option", "mode=classic", "--seed", "1", "--json", *seats]) == 0
    capsys.readouterr()
    assert run(["export", "last"]) == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    (call, *_) = [row["body"] for row in rows if row.get("kind") == "call"]
    system = call["messages"][0]["content"]
    (role,) = [name for name in ROLES if f"You are Player 1, the {name}." in system]
    for other in ROLES.values():
        for verb in other.verbs:
            assert (f"- {verb.value}(" in system or f"- {verb.value}:" in system) is (verb in ROLES[role].verbs), verb


def test_a_refusal_says_why() -> None:
    scene = Scene("Sheriff", "Citizen", "Citizen", "Citizen", "Jailor", "Mafioso", first_day="vote")

    def reasons(day: int, phase: str, player: int) -> dict[str, str]:
        seen = scene.play(day, phase, player).shown(player)
        return {a.name: a.reason for a in seen.available_actions or () if not a.available}

    morning = reasons(1, "discussion", 1)
    assert morning["vote"] == "not in this part of the day"
    assert morning["interrogate"] == "only at night"
    assert morning["guilty"] == "you judge nobody now"
    assert morning["maul"] == morning["reveal"] == "no action of yours"
    assert reasons(1, "nomination", 1)["unvote"] == "you have no vote to take back"
    assert reasons(1, "night", 1)["speak"] == "it is night"


def test_the_tools_speak_of_the_roles_of_this_game() -> None:
    scene = Scene("Sheriff", "Doctor", "Citizen", "Citizen", "Executioner", "Framer")
    knows = scene.town().knowledge(0)
    goals, kinds = (look_up(tool, {}, knows, scene.options.names, ()) for tool in ("victory_conditions", "alignments"))
    assert [line.partition(":")[0] for line in goals.splitlines()] == ["Town", "Mafia", "Executioner", "Jester"]
    for told in (goals, kinds):
        assert "Jester" in told
        assert "Vampire" not in told
        assert "Werewolf" not in told
    assert "Mafia Killing: Mafioso" in kinds, "the Framer may become one"
