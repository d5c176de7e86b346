"""Where a player reads what its role can do: at the start, and with its turns where that would be of another role."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from turn_kit import Scene

from wsap_core.cli.app import run
from wsap_tossim.engine.data.rules import RULE_SETS
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.options import TownOptions
from wsap_tossim.perception.description import role_sheet
from wsap_tossim.world import Town

LESSON = {"mode": "lesson:5:1", "rules": "quick"}
"""Four Citizens and a Mafioso, dealt by lot."""


def role_of(town: Town, player: int) -> str:
    return town.game.state.players[player].role.name


def seed_where(player: int, role: str, options: TownOptions) -> int:
    """Return a seed that deals a player a role."""
    return next(seed for seed in range(100) if role_of(Town(options, seed), player) == role)


def has_sheet(text: str, role: str, rules: str = "quick") -> bool:
    return role_sheet(ROLES[role], RULE_SETS[rules]) in text


def test_the_sheet_is_in_the_description_and_not_in_the_turns_of_a_world_that_was_reset() -> None:
    town = Town(TownOptions.read(LESSON), 1)
    town.reset(2)
    for player, name in enumerate(town.seats):
        role = role_of(town, player)
        assert has_sheet(town.seat(name).game_description, role)
        assert not has_sheet(town.observation(name).to_text(), role)


def test_the_sheet_is_in_the_turns_of_a_later_game_only_where_the_role_is_another() -> None:
    options = TownOptions.read(LESSON)
    first, same, other = (seed_where(0, role, options) for role in ("Citizen", "Citizen", "Mafioso"))
    town = Town(options, first)
    seat = town.seat("player-1")
    assert has_sheet(seat.game_description, "Citizen")
    town.reset(other)
    assert has_sheet(town.observation("player-1").to_text(), "Mafioso")
    assert "Mafioso" in seat.game_description, "whoever looks is told how it is now"
    assert has_sheet(town.observation("player-1").to_text(), "Mafioso"), (
        "the agent was told at the start of its session"
    )
    town.reset(same)
    assert not has_sheet(town.observation("player-1").to_text(), "Citizen")


def test_whoever_comes_for_a_later_game_was_told_of_it() -> None:
    options = TownOptions.read(LESSON)
    town = Town(options, seed_where(0, "Citizen", options))
    assert has_sheet(town.seat("player-1").game_description, "Citizen")
    town.reset(seed_where(0, "Mafioso", options))
    assert has_sheet(town.seat("player-1").game_description, "Mafioso")
    assert not has_sheet(town.observation("player-1").to_text(), "Mafioso")


def test_a_snapshot_knows_who_was_told_what() -> None:
    options = TownOptions.read(LESSON)
    citizen, mafioso = seed_where(0, "Citizen", options), seed_where(0, "Mafioso", options)
    town = Town(options, citizen)
    assert has_sheet(town.seat("player-1").game_description, "Citizen")
    town.reset(mafioso)
    kept = town.snapshot()
    again = Town(options, mafioso)
    assert has_sheet(again.seat("player-1").game_description, "Mafioso")
    again.restore(kept)
    assert again.observation("player-1") == town.observation("player-1")
    assert has_sheet(again.observation("player-1").to_text(), "Mafioso")


def test_a_new_role_is_told_with_the_turns_of_who_had_another_one() -> None:
    scene = Scene("Amnesiac", "Doctor", "Citizen", "Citizen", "Citizen", "Mafioso")
    scene.on(1, "night", 6, "kill 2").on(2, "night", 1, "remember 2").play(3, "discussion", 1)
    town = scene.town()
    assert role_of(town, 0) == "Doctor"
    assert has_sheet(town.observation("player-1").to_text(), "Doctor", "classic")
    assert "\n- heal: Protect a player from attacks\n" in town.observation("player-1").to_text()
    assert not has_sheet(town.observation("player-3").to_text(), "Citizen", "classic")
    assert has_sheet(town.seat("player-1").game_description, "Doctor", "classic")
    assert not has_sheet(town.observation("player-1").to_text(), "Doctor", "classic"), "it came when it had this role"


def test_a_recorded_run_tells_each_role_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    assert run(["play", "tossim", "--option", "mode=lesson:5:1", "--option", "rules=quick", "--json"]) == 0
    assert run(["export", "last", "--output", str(tmp_path / "run.jsonl")]) == 0
    text = (tmp_path / "run.jsonl").read_text(encoding="utf-8")
    contexts = [
        row["body"]["context"]
        for row in map(json.loads, text.splitlines())
        if row.get("kind") == "observation" and "context" in row["body"]
    ]
    assert contexts
    assert not any(has_sheet(context, role) for context in contexts for role in ("Citizen", "Mafioso"))
