"""Commands of several agents in any order, against what the protocol says of their states; and whatever is sent."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest
from bridge_server import TOKEN, command, serving
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from scripted_engine import ScriptedEngine

from wsap_tes3mp.bridge.app import create_app
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.protocol.commands import CommandInput
from wsap_tes3mp.protocol.errors import BridgeError

EXAMPLES = int(os.environ.get("WSAP_FUZZ", "1"))
AGENTS = st.sampled_from(["ada", "bob", "eve"])


class Commands(RuleBasedStateMachine):
    """The model knows which command of an agent runs, and what each one came to."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.engine = ScriptedEngine("ada", "bob")
        self.open: dict[str, asyncio.Future[Done]] = {}
        self.running: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.keys: dict[tuple[str, str], tuple[str, str]] = {}
        self.log = CommandLog()
        self.bridge = Bridge(self.engine, self.log)
        self.engine.execute = self.execute  # type: ignore[assignment]

    async def execute(self, agent_id: str, command_id: str, *rest: Any) -> Done:
        """End as the test says."""
        assert command_id not in self.engine.carried_out
        self.engine.carried_out.append(command_id)
        self.open[command_id] = self.loop.create_future()
        return await self.open[command_id]

    async def turn(self) -> None:
        """Let what is ready happen."""
        for _ in range(8):
            await asyncio.sleep(0)

    @rule(agent=AGENTS, name=st.sampled_from(["wait", "noop", "dance"]), key=st.sampled_from([None, "k1", "k2"]))
    def send(self, agent: str, name: str, key: str | None) -> None:
        """Submit a command."""

        async def sent() -> str:
            body = {**command("wait", agent_id=agent), "command": name}
            try:
                return (await self.bridge.receive(body, key=key)).command_id
            except BridgeError as error:
                return error.code
            finally:
                await self.turn()

        found = self.loop.run_until_complete(sent())
        known = None if key is None else self.keys.get((agent, key))
        if name == "dance":
            assert found == "INVALID_COMMAND"
        elif known is not None:
            assert found == (known[1] if known[0] == name else "IDEMPOTENCY_KEY_REUSED")
        elif not self.engine.boot_id:
            assert found == "BRIDGE_UNAVAILABLE"
        elif agent == "eve":
            assert found == "VALIDATION_ERROR"
        elif name == "wait" and agent in self.running:
            assert found == "COMMAND_CONFLICT"
        else:
            assert found.startswith("cmd_")
            assert found not in self.states
            self.states[found] = "confirmed" if name == "noop" else "dispatched"
            if name == "wait":
                self.running[agent] = found
            if key is not None:
                self.keys[agent, key] = (name, found)

    @rule(agent=AGENTS, state=st.sampled_from(["confirmed", "failed", "unknown"]))
    def end(self, agent: str, state: Any) -> None:
        """Let the agent's command end."""
        command_id = self.running.pop(agent, None)
        if command_id is not None:
            self.open[command_id].set_result(Done(state))
            self.loop.run_until_complete(self.turn())
            self.states[command_id] = state

    @rule(there=st.booleans())
    def connect(self, there: bool) -> None:
        """Let the engine come and go."""
        self.engine.boot_id = "boot-1" if there else None

    @invariant()
    def every_command_is_where_it_should_be(self) -> None:
        """Compare the log with the model."""
        for command_id, state in self.states.items():
            found = self.log.find(command_id)
            assert found is not None
            assert found.state == state

    def teardown(self) -> None:
        """Stop the bridge: what runs becomes unknown."""
        self.loop.run_until_complete(self.bridge.stop())
        for command_id in self.running.values():
            found = self.log.find(command_id)
            assert found is not None
            assert found.state == "unknown"
        self.log.close()
        self.loop.close()


TestCommands = Commands.TestCase
TestCommands.settings = settings(
    max_examples=12 * EXAMPLES, stateful_step_count=25, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def test_every_command_of_the_model_is_one_that_can_be_read() -> None:
    CommandInput.model_validate(command()).parameters()


@pytest.mark.slow
def test_nothing_that_is_sent_breaks_the_bridge() -> None:
    schemathesis = pytest.importorskip("schemathesis")
    with CommandLog() as log:
        document = create_app(Bridge(ScriptedEngine(), log), TOKEN).openapi()
    document = json.loads(json.dumps(document))
    document["paths"].pop("/events")  # a stream has no end of its own
    schema = schemathesis.openapi.from_dict(document)
    broken: list[str] = []
    tried = 0
    with serving("ada", "bob") as served:
        for result in schema.get_all_operations():
            operation = result.ok()

            @settings(
                max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            def attempt(case: Any) -> None:
                nonlocal tried
                tried += 1
                if "wait" in (case.query or {}):
                    case.query["wait"] = 0
                answer = case.call(base_url=served.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
                if answer.status_code >= 500 and answer.status_code not in (501, 503):
                    broken.append(f"{case.method} {case.formatted_path}: {answer.status_code} {answer.text[:300]}")
                if answer.status_code >= 400:
                    assert sorted(answer.json()["error"]) == ["code", "details", "message", "retry", "timestamp"]

            for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
                try:
                    given(case=operation.as_strategy(generation_mode=mode))(attempt)()
                except Unsatisfiable:
                    continue  # a route that takes nothing can't be given anything wrong
    assert not broken
    assert tried > 10
