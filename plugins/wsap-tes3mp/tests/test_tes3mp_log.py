"""The command log: what it keeps, through crashes and whatever comes."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wsap_core.errors import NotADatabaseError, StorageError, StorageLockedError, StorageVersionError
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.records import COMMAND, PERCEPTION
from wsap_tes3mp.protocol.commands import CommandInput
from wsap_tes3mp.protocol.errors import KeyReusedError
from wsap_tes3mp.protocol.perception import PerceptionOutput

BEGAN = datetime(2026, 3, 21, 14, 30, tzinfo=UTC)


def perceived(sequence: int = 1, **changes: Any) -> PerceptionOutput:
    """Return a perception."""
    body: dict[str, Any] = {
        "timestamp": BEGAN.replace(second=sequence % 60),
        "agent_id": "mira",
        "sequence": sequence,
        "boot_id": "b1",
        "location": {"cell": "Harbour", "x": 1.5, "y": 2, "z": 0, "interior": False},
        "health": {"current": 40, "max": 50},
        "nearby_entities": [{"entity_id": "n1", "name": "Odo", "entity_type": "npc", "distance": 3.0}],
        "inventory_summary": {"gold": 3, "item_count": 1, "encumbrance_pct": 0.1},
        "active_quests": [],
        "environment": {"time_of_day": "noon", "weather": "clear", "is_combat": False, "is_dialogue": False},
        "raw_engine_data": {"tick": None},
    }
    return PerceptionOutput.model_validate({**body, **changes})


def commanded(command: str = "wait", **changes: Any) -> CommandInput:
    """Return a command."""
    values: dict[str, Any] = {
        "timestamp": BEGAN,
        "agent_id": "mira",
        "command": command,
        "params": {"duration_seconds": 1},
        "reasoning": "Nothing to do.",
        "episode_id": "ep1",
    }
    return CommandInput.model_validate({**values, **changes})


def rows(log: CommandLog) -> tuple[int, int]:
    """Return how many commands and perceptions are kept."""
    return len(log.read(COMMAND.select())), len(log.read(PERCEPTION.select()))


def test_a_command_goes_from_accepted_to_its_outcome() -> None:
    with CommandLog(ids=iter(["cmd_1"]).__next__, now=iter([0.0, 10.0, 10.5, 12.0, 13.0]).__next__) as log:
        seen = perceived()
        assert log.begin(commanded(), seen, engine="simulated") == "cmd_1"
        assert log.find("cmd_1").state == "accepted"  # type: ignore[union-attr]
        log.dispatched("cmd_1")
        assert log.find("cmd_1").state == "dispatched"  # type: ignore[union-attr]
        assert log.finish("cmd_1", Done("confirmed", "You wait.", sequence=2))
        assert not log.finish("cmd_1", Done("failed", "No."))
        record = log.record("cmd_1")
        assert record is not None
        assert (record.state, record.message, record.sequence, record.latency) == ("confirmed", "You wait.", 2, 2.0)
        assert (record.received, record.dispatched, record.finished) == (10.0, 10.5, 12.0)
        assert log.perception(record) == seen
        assert log.find("cmd_2") is None


def test_perceptions_that_differ_by_their_moment_alone_are_kept_once() -> None:
    with CommandLog() as log:
        first, second = (log.record(log.begin(commanded(), perceived(sequence))) for sequence in (1, 2))
        log.begin(commanded(), perceived(3, health={"current": 1, "max": 50}))
        assert rows(log) == (3, 2)
        assert first is not None
        assert second is not None
        assert log.perception(first) == perceived(1)
        assert log.perception(second) == perceived(2)


def test_a_key_stands_for_one_command_of_one_agent() -> None:
    with CommandLog() as log:
        assert log.repeated(commanded(), "k") is None
        command_id = log.begin(commanded(), key="k")
        assert log.repeated(commanded(), "k") == command_id
        assert log.repeated(commanded(agent_id="odo"), "k") is None
        with pytest.raises(KeyReusedError):
            log.repeated(commanded(reasoning="Something else."), "k")
        with pytest.raises(KeyReusedError):
            log.begin(commanded(), key="k")
        assert rows(log) == (1, 0)


@pytest.mark.parametrize("raw", [None, 3, "x", [], {}, {"agent_id": 3, "params": []}, {"agent_id": "\ud800"}])
def test_a_rejected_command_is_kept_whatever_it_looks_like(raw: Any) -> None:
    with CommandLog() as log:
        outcome = log.find(log.reject(raw, "VALIDATION_ERROR", "It is none."))
        assert outcome is not None
        assert (outcome.state, outcome.code) == ("rejected", "VALIDATION_ERROR")


def test_after_a_crash_what_was_not_sent_has_failed_and_what_was_running_is_unknown(tmp_path: Path) -> None:
    log = CommandLog(tmp_path / "log.sqlite")
    waiting, running, done = (log.begin(commanded()) for _ in range(3))
    log.dispatched(running)
    log.dispatched(done)
    log.finish(done, Done("confirmed"))
    log.close()
    with CommandLog(tmp_path / "log.sqlite") as again:
        states = {name: again.find(name).state for name in (waiting, running, done)}  # type: ignore[union-attr]
        assert states == {waiting: "failed", running: "unknown", done: "confirmed"}


def test_whatever_an_engine_says_can_be_kept() -> None:
    with CommandLog() as log:
        command_id = log.begin(commanded(params={"duration_seconds": 1, "x": float("nan"), "y": "\ud800"}))
        data = {"a": float("inf"), "b": {1, 2}, "c": b"\xff", "d": {3: object}}
        assert log.finish(command_id, Done("failed", "\ud800", "\udfff", 10**40, data))
        record = log.record(command_id)
        assert record is not None
        assert (record.data["a"], record.sequence) == ("inf", None)


def test_a_log_has_one_writer_and_any_number_of_readers(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with CommandLog(path) as log:
        command_id = log.begin(commanded())
        with pytest.raises(StorageLockedError, match="Another bridge is writing the command log"):
            CommandLog(path)
        with CommandLog(path, read_only=True) as reader:
            assert reader.find(command_id).state == "accepted"  # type: ignore[union-attr]


def test_a_folder_that_there_is_not_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist; make it"):
        CommandLog(tmp_path / "typo" / "log.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_other_files_and_newer_versions_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    path.write_text("This is a letter, long enough to be taken for a page of a database by nobody." * 20)
    with pytest.raises(NotADatabaseError, match="is not a command log"):
        CommandLog(path)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE command (x)")
    connection.commit()
    with pytest.raises(NotADatabaseError, match="is not a command log"):
        CommandLog(other)
    newer = tmp_path / "newer.sqlite"
    CommandLog(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    for read_only in (False, True):
        with pytest.raises(StorageVersionError, match="A newer version wrote the command log"):
            CommandLog(newer, read_only=read_only)
