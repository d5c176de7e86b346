"""The command log against a model of it: any order of calls, crashes and restarts between them."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from test_tes3mp_log import commanded, perceived

from wsap_core.errors import StorageError
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.records import COMMAND, PERCEPTION
from wsap_tes3mp.protocol.errors import KeyReusedError
from wsap_tes3mp.protocol.perception import PerceptionOutput

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


class LogMachine(RuleBasedStateMachine):
    """Calls a log and a model of it."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.lives = 0
        self.log = CommandLog(self.folder / "0.sqlite")
        self.states: dict[str, str] = {}
        self.keys: dict[tuple[str, str], tuple[str, int]] = {}
        self.seen: dict[str, PerceptionOutput] = {}

    @rule(target=ids, agent=st.sampled_from("ab"), number=st.integers(0, 2), health=st.integers(0, 3),
          sequence=st.integers(0, 99), key=st.none() | st.sampled_from("xyz"))  # fmt: skip
    def begin(self, agent: str, number: int, health: int, sequence: int, key: str | None) -> str:
        command = commanded(agent_id=agent, reasoning=f"Number {number}.")
        known = self.keys.get((agent, key or ""))
        if key is not None and known is not None:
            if known[1] != number:
                with pytest.raises(KeyReusedError):
                    self.log.repeated(command, key)
            else:
                assert self.log.repeated(command, key) == known[0]
            with pytest.raises(KeyReusedError):
                self.log.begin(command, key=key)
            return known[0]
        seen = perceived(sequence, agent_id=agent, health={"current": health, "max": 9})
        command_id = self.log.begin(command, seen, key)
        assert command_id not in self.states
        self.states[command_id], self.seen[command_id] = "accepted", seen
        if key is not None:
            self.keys[agent, key] = command_id, number
        return command_id

    @rule(command_id=ids)
    def dispatch(self, command_id: str) -> None:
        if self.states[command_id] != "accepted":
            with pytest.raises(StorageError):
                self.log.dispatched(command_id)
            return
        self.log.dispatched(command_id)
        self.states[command_id] = "dispatched"

    @rule(command_id=ids, state=st.sampled_from(["confirmed", "failed", "unknown"]))
    def finish(self, command_id: str, state: Any) -> None:
        is_open = self.states[command_id] in ("accepted", "dispatched")
        assert self.log.finish(command_id, Done(state)) == is_open
        if is_open:
            self.states[command_id] = state

    @rule(raw=JSON)
    def reject(self, raw: Any) -> None:
        self.states[self.log.reject(raw, "VALIDATION_ERROR", "No.")] = "rejected"

    @rule(killed=st.booleans())
    def restart(self, killed: bool) -> None:
        """Let the next bridge take over: after an end in good order, or from what is in the files."""
        path = self.log.path
        assert path is not None
        if killed:
            self.lives += 1
            copy = self.folder / f"{self.lives}.sqlite"
            for ending in ("", "-wal"):
                if (source := Path(f"{path}{ending}")).exists():
                    shutil.copy(source, f"{copy}{ending}")
            path = copy
        self.log.close()
        self.log = CommandLog(path)
        settled = {"accepted": "failed", "dispatched": "unknown"}
        self.states = {command_id: settled.get(state, state) for command_id, state in self.states.items()}

    @invariant()
    def agrees(self) -> None:
        rows = {row.id: row for row in self.log.read(COMMAND.select())}
        assert {command_id: row.state for command_id, row in rows.items()} == self.states
        different = {seen.model_copy(update={"timestamp": None, "sequence": None}).model_dump_json(warnings=False)
                     for seen in self.seen.values()}  # fmt: skip
        assert len(self.log.read(PERCEPTION.select())) == len(different)
        for command_id in list(self.seen)[-2:]:
            record = self.log.record(command_id)
            assert record is not None
            assert self.log.perception(record) == self.seen[command_id]

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.folder)


EXAMPLES = int(os.environ.get("WSAP_TES3MP_FAULTS", "6"))
LogMachine.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=15, deadline=None)
test_the_log_does_as_its_model = pytest.mark.usefixtures("tmp_path")(LogMachine.TestCase)
