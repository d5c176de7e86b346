"""Statistics, exports, redaction, retention and the journal of a command log, and the commands that show them."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from test_tes3mp_log import commanded, perceived, rows

from wsap_tes3mp.cli.log import STATES
from wsap_tes3mp.cli.log import log as log_group
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.log.export import ChatLine, Redaction, StepLine, schema_of, write
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.query import Filter, all_agents, all_players, everything, newest, notes, prune, stats
from wsap_tes3mp.protocol.commands import CommandInput, CommandState
from wsap_tes3mp.protocol.perception import PerceptionOutput

DAY = 86400.0


class Time:
    """Seconds since 1970, as a test says."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def do(log: CommandLog, done: Done | None = None, seen: PerceptionOutput | None = None, **changes: Any) -> str:
    """Put a command through."""
    command_id = log.begin(commanded(**changes), seen, engine="simulated")
    if done is not None:
        log.dispatched(command_id)
        log.finish(command_id, done)
    return command_id


def story(log: CommandLog) -> None:
    """Log an episode of two agents with a note, a failure and a rejection."""
    other = {"entity_id": "player:Odo", "name": "Odo", "entity_type": "player", "distance": 2.0}
    meeting = perceived(2, nearby_entities=[other])
    do(log, Done("confirmed", "You wait.", sequence=2), perceived(1))
    do(log, Done("failed", "Odo is too far away.", "OUT_OF_REACH"), meeting, command="interact",
       params={"entity_id": "player:Odo", "x": 3}, reasoning="Greet Odo, as mira.odo@example.org asked.")  # fmt: skip
    do(log, Done("confirmed"), meeting, command="journal_note",
       params={"content": "Odo has the key.", "tags": ["quest", "odo"]}, reasoning="Remember.")  # fmt: skip
    do(log, Done("confirmed"), perceived(5, agent_id="odo"), agent_id="odo", episode_id=None)
    log.reject({"agent_id": "mira", "command": "fly"}, "INVALID_COMMAND", "There is no fly.")


@pytest.fixture
def log() -> Iterator[CommandLog]:
    with CommandLog() as opened:
        story(opened)
        yield opened


def exported(log: CommandLog, form: Any, chosen: Filter | None = None, **options: Any) -> list[dict[str, Any]]:
    file = io.StringIO()
    write(everything(log, chosen or Filter()), form, file, **options)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_statistics_count_by_agent_command_state_and_code() -> None:
    time = Time()
    with CommandLog(now=time) as log:
        for seconds in (1, 2, 3, 10):
            command_id = log.begin(commanded())
            time.now += seconds
            log.dispatched(command_id)
            log.finish(command_id, Done("confirmed"))
        do(log, Done("unknown"))
        found = stats(log, Filter())
        assert found.kinds == {"wait": {"confirmed": 4, "unknown": 1}}
        latency = found.latencies["wait"]
        assert (latency.count, latency.median, latency.p95, latency.most) == (4, 2.5, 10, 10)


def test_statistics_and_lists_are_of_what_is_chosen(log: CommandLog) -> None:
    found = stats(log, Filter())
    assert (found.commands, found.agents, found.episodes, found.perceptions) == (5, {"mira": 4, "odo": 1}, 1, 3)
    assert found.codes == {"OUT_OF_REACH": 1, "INVALID_COMMAND": 1}
    assert stats(log, Filter(agents=["odo"])).commands == 1
    assert [record.command for record in newest(log, Filter(episodes=["ep1"]), 2)] == ["journal_note", "interact"]
    assert [record.state for record in newest(log, Filter(states=["rejected"]), 9)] == ["rejected"]
    assert (stats(log, Filter(since=1e12)).commands, stats(log, Filter(since=1e12)).perceptions) == (0, 0)
    assert stats(log, Filter(until=1e12)).commands == 5


def test_statistics_of_an_empty_log_say_so(tmp_path: Path) -> None:
    CommandLog(tmp_path / "empty.sqlite").close()
    assert run("stats", "--log", str(tmp_path / "empty.sqlite")).output == "There are no such commands.\n"


def test_a_chat_export_is_a_dataset_of_conversations(log: CommandLog) -> None:
    lines = exported(log, "chat", Filter(states=("confirmed",)))
    assert len(lines) == 3
    for line in lines:
        ChatLine.model_validate(line)
        assert [message["role"] for message in line["messages"]] == ["system", "user", "assistant"]
        seen, answer = (json.loads(message["content"]) for message in line["messages"][1:])
        PerceptionOutput.model_validate({**seen, "boot_id": None})
        assert "raw_engine_data" not in seen
        given = {"timestamp": seen["timestamp"], "agent_id": line["agent"], **answer}
        CommandInput.model_validate(given).parameters()
    assert set(exported(log, "chat", bare=True)[0]) == {"messages"}
    assert _one_type_per_column(lines)


def test_rows_have_state_action_and_outcome_and_each_refers_to_the_next_state(log: CommandLog) -> None:
    lines = exported(log, "steps")
    for line in lines:
        StepLine.model_validate(line)
    first, second, third, fourth, rejected = lines
    assert first["next_state_id"] == second["state_id"] == third["state_id"] == second["next_state_id"]
    assert third["next_state_id"] is None
    assert fourth["agent"] == "odo"
    assert second["action"]["params"] == {"entity_id": "player:Odo", "interaction_type": "activate"}
    assert (second["outcome"]["state"], second["outcome"]["code"]) == ("failed", "OUT_OF_REACH")
    assert (rejected["state"], rejected["outcome"]["state"], rejected["action"]["command"]) == (None, "rejected", "fly")
    assert first["state"]["location"]["cell"] == "Harbour"
    assert "raw_engine_data" not in first["state"]
    assert _one_type_per_column(lines)


def test_perceptions_can_be_written_once_beside_the_rows(log: CommandLog) -> None:
    seen = io.StringIO()
    lines = exported(log, "steps", perceptions=seen)
    states = {row["state_id"]: row["state"] for row in map(json.loads, seen.getvalue().splitlines())}
    assert len(states) == len(seen.getvalue().splitlines()) == 3
    assert all(line["state"] is None for line in lines)
    whole = exported(log, "steps")
    assert [states.get(line["state_id"]) for line in lines] == [line["state"] for line in whole]


def _one_type_per_column(lines: list[dict[str, Any]]) -> bool:
    """Return whether tables can be made of the lines: each field has one type, or is null."""
    kinds: dict[str, set[str]] = {}

    def walk(where: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(f"{where}.{key}", item)
        elif isinstance(value, list):
            for item in value:
                walk(f"{where}[]", item)
        elif value is not None:
            kinds.setdefault(where, set()).add("number" if type(value) in (int, float) else type(value).__name__)

    for line in lines:
        walk("", line)
    return all(len(found) == 1 for found in kinds.values())


def named(log: CommandLog) -> Redaction:
    return Redaction(names=True, agents=all_agents(log), players=all_players(log))


def test_a_player_is_nameless_also_in_what_was_written_before_it_was_perceived() -> None:
    with CommandLog() as log:
        do(log, Done("confirmed"), perceived(1), reasoning="Zorro will come.")
        player = {"entity_id": "player:zorro2", "name": "Zorro", "entity_type": "player", "distance": 2.0}
        do(log, Done("confirmed"), perceived(2, nearby_entities=[player]))
        text = json.dumps(exported(log, "steps", redaction=named(log)))
    assert "Zorro" not in text
    assert "zorro2" not in text
    assert "player_1 will come." in text


@pytest.mark.parametrize("name", ["weiß", "WEISS", "İlker", "ſam", "ǅ", "Straße 3", "a.b", "Ωmega"])
def test_a_name_is_taken_out_however_it_is_spelled(name: str) -> None:
    taken = Redaction(names=True, agents=[name])
    for spelled in (name, name.upper(), name.lower()):
        left = taken.word(f"I saw {spelled} today, {name}.")
        assert name not in left
        assert left.endswith(" today, agent_1.")


def test_names_are_replaced_by_the_same_word_wherever_they_stand(log: CommandLog) -> None:
    for form in ("chat", "steps"):
        text = json.dumps(exported(log, form, redaction=named(log)))
        assert "Odo" not in text
        assert "odo" not in text.replace("bodo", "")
        assert "mira" not in text.casefold()
        assert "agent_1" in text
        assert "agent_2 has the key." in text


def test_free_text_reasoning_and_patterns_are_taken_out(log: CommandLog) -> None:
    text = json.dumps(exported(log, "steps", redaction=Redaction(text=True)))
    assert "has the key" not in text
    assert "too far away" not in text
    assert "Greet Odo" in text
    text = json.dumps(exported(log, "chat", redaction=Redaction(reasoning=True)))
    assert "Greet Odo" not in text
    pattern = Redaction(patterns=[r"\S+@\S+"])
    assert "Greet Odo, as [redacted] asked." in json.dumps(exported(log, "steps", redaction=pattern))


@given(secret=st.text(min_size=1, max_size=12), rest=st.text(max_size=12))
@settings(max_examples=25)
@pytest.mark.slow
def test_a_redacted_pattern_is_nowhere_in_an_export(secret: str, rest: str) -> None:
    import re

    with CommandLog() as log:
        do(log, Done("confirmed", rest + "XX9" + secret), reasoning=f"XX9{secret}")
        taken = Redaction(patterns=(re.escape("XX9"),))
        assert "XX9" not in json.dumps(exported(log, "steps", redaction=taken))


def test_the_journal_has_the_notes_with_their_tags(log: CommandLog) -> None:
    assert [note.params for note in notes(log, Filter())] == [{"content": "Odo has the key.", "tags": ["quest", "odo"]}]
    assert notes(log, Filter(), ["quest"])
    assert not notes(log, Filter(), ["war"])


def test_pruning_deletes_whole_old_episodes_and_keeps_the_journal_and_the_last_hour() -> None:
    time = Time()
    with CommandLog(now=time) as log:
        do(log, Done("confirmed"), perceived(1), episode_id="old")
        do(log, Done("confirmed"), perceived(2, health={"current": 9, "max": 50}), episode_id="long")
        do(log, Done("confirmed"), episode_id="old", command="journal_note", params={"content": "A note."})
        running = log.begin(commanded(episode_id=None))
        log.dispatched(running)
        time.now += 10 * DAY
        do(log, Done("confirmed"), perceived(4), episode_id="long")
        assert prune(log, time.now, older_than=5 * DAY, dry_run=True).commands == 1
        assert rows(log) == (5, 2)
        found = prune(log, time.now, older_than=5 * DAY)
        assert (found.commands, found.perceptions) == (1, 0)  # the newest command of the other episode has the same
        assert log.find(running).state == "dispatched"  # type: ignore[union-attr]
        assert prune(log, time.now, older_than=0).commands == 0  # the episode had a command in the last hour
        time.now += DAY
        found = prune(log, time.now, older_than=0)
        assert (found.commands, found.perceptions) == (2, 2)
        assert prune(log, time.now, older_than=0, journal=True).commands == 1


def test_pruning_by_count_keeps_the_newest() -> None:
    time = Time()
    with CommandLog(now=time) as log:
        ids = [do(log, Done("confirmed"), perceived(n, boot_id="b"), episode_id=None) for n in range(10)]
        time.now += DAY
        assert prune(log, time.now, keep=4).commands == 6
        assert [record.id for record in newest(log, Filter(), 99)] == ids[:5:-1]


@pytest.mark.slow
def test_a_file_gives_room_back_and_a_bridge_goes_on_writing_while_it_is_pruned(tmp_path: Path) -> None:
    time, path = Time(), tmp_path / "log.sqlite"
    with CommandLog(path, now=time) as log:
        for n in range(300):
            do(log, Done("confirmed"), perceived(1, raw_engine_data={"n": str(n) * 900}))
        time.now += DAY
        with CommandLog(path, beside=True) as other:
            found = prune(other, time.now, older_than=0)
        assert (found.commands, found.perceptions) == (300, 300)
        do(log, Done("confirmed"), perceived(1, raw_engine_data={"n": "299" * 900}))  # the one that it kept last
        assert rows(log) == (1, 1)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone()[0] < 20
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def run(*arguments: str) -> Result:
    return CliRunner().invoke(log_group, [*arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with CommandLog(tmp_path / "log.sqlite") as opened:
        story(opened)
    return tmp_path / "log.sqlite"


@pytest.mark.parametrize("command", ["list", "stats", "journal"])
def test_commands_print_tables_and_json(path: Path, command: str) -> None:
    plain, data = run(command, "--log", str(path)), run(command, "--log", str(path), "--json")
    assert (plain.exit_code, data.exit_code) == (0, 0), plain.output + data.output
    assert "key" in plain.output or "confirmed" in plain.output
    assert json.loads(data.output)
    assert run(command, "--log", str(path), "--since", "7d", "--agent", "nobody").exit_code == 0


def test_one_command_is_shown_with_its_perception(path: Path) -> None:
    (first, *_) = json.loads(run("list", "--log", str(path), "--json", "--state", "failed").output)
    shown = json.loads(run("show", first["id"], "--log", str(path), "--json").output)
    assert shown["perception"]["location"]["cell"] == "Harbour"
    assert "OUT_OF_REACH" in run("show", first["id"], "--log", str(path)).output


def test_an_export_is_written_whole_and_not_over_another_file(path: Path, tmp_path: Path) -> None:
    out, seen = tmp_path / "steps.jsonl", tmp_path / "seen.jsonl"
    done = run("export", "--log", str(path), "--format", "steps", "--out", str(out), "--perceptions", str(seen))
    assert done.exit_code == 0, done.output
    assert (len(out.read_text().splitlines()), len(seen.read_text().splitlines())) == (5, 3)
    one = run("export", "--log", str(path), "--format", "steps", "--state", "failed", "--out", str(tmp_path / "one"))
    assert "Wrote 1 line to" in one.output
    assert "already exists" in str(run("export", "--log", str(path), "--out", str(out)).exception)
    assert len(run("export", "--log", str(path), "--bare").stdout.splitlines()) == 3
    assert json.loads(run("export", "--schema").output) == schema_of("chat")


def test_the_states_of_the_options_are_the_protocol_s() -> None:
    assert get_args(CommandState) == STATES


@pytest.mark.parametrize("name", ["log.sqlite", "same.jsonl"])
def test_an_export_writes_neither_over_the_log_nor_two_things_into_one_file(
    path: Path, tmp_path: Path, name: str
) -> None:
    before = path.read_bytes()
    files = ("--out", str(tmp_path / name), "--perceptions", str(tmp_path / "same.jsonl"))
    done = run("export", "--log", str(path), "--format", "steps", "--force", *files)
    assert "are different files" in str(done.exception)
    assert path.read_bytes() == before
    assert not (tmp_path / "same.jsonl").exists()


def test_a_pattern_that_matches_nothing_at_a_place_leaves_that_place_alone() -> None:
    assert Redaction(patterns=["[0-9]*"]).word("born 1987 here") == "born [redacted] here"


@pytest.mark.parametrize(("arguments", "words"), [
    (["list", "--since", "yesterday"], "not a time"), (["export", "--pattern", "("], "is invalid"),
    (["prune"], "Give --older-than"), (["show", "cmd_x"], "no command"),
    (["list", "--log", "/nowhere/log.sqlite"], "no command log"), (["export", "--perceptions", "x"], "--format steps"),
    (["list", "--state", "nonsense"], "'nonsense' is not one of"), (["export", "--state", "x"], "'x' is not one of"),
    (["prune", "--older-than", "nan"], "'nan' is not a number"), (["export", "--schema"], "--log has no effect"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_sentence(path: Path, arguments: list[str], words: str) -> None:
    given = arguments if "--log" in arguments else [*arguments, "--log", str(path)]
    done = run(*given)
    text = done.output + str(done.exception or "")
    assert done.exit_code != 0
    assert words in text.replace("\n", " ")


def test_pruning_from_the_command_line_says_what_it_would_do(path: Path) -> None:
    found = json.loads(run("prune", "--log", str(path), "--keep", "0", "--dry-run", "--json").output)
    assert found == {"commands": 0, "perceptions": 0, "dry_run": True}  # all of the last hour


def test_no_next_state_leads_from_one_world_into_another() -> None:
    """Several runs, or agents that had gone back, may have the same episode."""
    with CommandLog() as log:
        for boot, sequence in (("a", 1), ("a", 2), ("b", 3), ("b", 4), ("b", 2), (None, 9)):
            seen = perceived(sequence, boot_id=boot, health={"current": sequence, "max": 50})
            do(log, Done("confirmed"), seen, episode_id="seed-0-0", agent_id="seat-1")
        do(log, Done("confirmed"), None, episode_id="seed-0-0", agent_id="seat-1")
        rows = exported(log, "steps")
    ids = [row["state_id"] for row in rows]
    assert [row["next_state_id"] for row in rows] == [ids[1], None, ids[3], None, None, None, None]


def test_bridges_without_numbers_are_told_apart_by_time() -> None:
    with CommandLog() as log:
        for minute in (1, 2, 0):
            when = f"2026-01-01T00:0{minute}:00.5Z"
            health = {"current": minute + 1, "max": 50}
            seen = perceived(boot_id=None, timestamp=when, health=health).model_copy(update={"sequence": None})
            do(log, Done("confirmed"), seen, episode_id="e")
        rows = exported(log, "steps")
    assert [row["next_state_id"] is None for row in rows] == [False, True, True]
