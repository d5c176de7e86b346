"""Another engine takes the place of one in the middle of a journal; agents, journal and log go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import httpx2
import pytest
from hamlet import Hamlet

from wsap_check.hosts import ManualClock
from wsap_tes3mp.agent.wayfarer import Wayfarer
from wsap_tes3mp.bridge.app import create_app
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.client import BridgeClient
from wsap_tes3mp.engines.engine import BridgePort, Engine
from wsap_tes3mp.engines.simulated.engine import SimulatedEngine
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.query import Filter, everything, newest, notes
from wsap_tes3mp.protocol.bridge import JoinRequest
from wsap_tes3mp.protocol.commands import CommandContext, CommandInput
from wsap_tes3mp.protocol.perception import PerceptionOutput
from wsap_tes3mp.world.actions import command_of, command_params

TOKEN = "token-of-the-tests-0123"
BEATS = 12


class Heartbeat:
    """Perceives, decides, commands; writes every fourth beat down. It knows no engine."""

    def __init__(self, *, blind: bool = False) -> None:
        self.agent = Wayfarer()
        self.cycle = 0
        self._blind = blind

    def decide(self, seen: PerceptionOutput) -> CommandInput:
        """Return the command for a perception."""
        self.cycle += 1
        shown = seen.model_copy(update={"raw_engine_data": {}}) if self._blind else seen
        if self.cycle % 4 == 0:
            name, why = "journal_note", "Remember."
            params = {"content": f"Beat {self.cycle} in {shown.location.cell}.", "tags": ["beat"]}
        else:
            action = self.agent.act_on(shown)
            name, why, params = command_of(action.name), action.reasoning or "", command_params(action, shown)
        return CommandInput(
            timestamp=seen.timestamp,
            agent_id="mira",
            command=name,
            params=params,
            reasoning=why,
            episode_id="ep1",
            context=CommandContext(perception_timestamp=seen.timestamp, heartbeat_cycle=self.cycle),
        )

    async def beat(self, bridge: BridgePort) -> None:
        """Do one beat."""
        accepted = await bridge.command(self.decide(await bridge.perception("mira")))
        await bridge.outcome(accepted.command_id, wait=30)


async def life(engine: Engine, path: Path, heartbeat: Heartbeat, *, ends_in_command: bool = False) -> None:
    """Serve an engine behind the log for some beats."""
    with CommandLog(path) as log:
        bridge = Bridge(engine, log, clock=ManualClock())
        await bridge.start()
        transport = httpx2.ASGITransport(app=create_app(bridge, TOKEN))
        async with BridgeClient("http://127.0.0.1:8765", TOKEN, transport=transport) as client:
            for _ in range(BEATS):
                await heartbeat.beat(client)
            if ends_in_command:
                await client.command(heartbeat.decide(await client.perception("mira")))
        await bridge.stop()


async def joined(engine: Hamlet) -> Engine:
    await engine.join(JoinRequest(agent_id="mira"))
    return engine


@pytest.mark.slow
def test_journal_and_log_go_on_with_another_engine(tmp_path: Path) -> None:
    path = tmp_path / "commands.sqlite"

    async def scenario() -> None:
        heartbeat = Heartbeat()
        first = SimulatedEngine(seed=5, agents=("mira",))
        await life(first, path, heartbeat, ends_in_command=True)
        await life(await joined(Hamlet(extra={"raw_engine_data": {"tick": 1}})), path, heartbeat)

    asyncio.run(scenario())
    with CommandLog(path, read_only=True) as log:
        records = newest(log, Filter(), 999)[::-1]
        assert [record.context["heartbeat_cycle"] for record in records] == list(range(1, 2 * BEATS + 2))
        assert Counter(record.engine for record in records) == {"simulated": BEATS + 1, "hamlet": BEATS}
        cut_off = records[BEATS]
        assert (cut_off.state, cut_off.code) in {("failed", "NOT_SENT"), ("unknown", "BRIDGE_STOPPED"),
                                                 ("confirmed", None)}  # fmt: skip
        written = notes(log, Filter(), ["beat"])
        assert len(written) == len([n for n in range(1, 2 * BEATS + 2) if n % 4 == 0])
        cells = {str(note.params["content"]).split(" in ")[1] for note in written}
        assert cells & {"yard.", "cellar."}
        assert cells - {"yard.", "cellar."}


def test_the_same_perceptions_without_the_engines_own_data_make_the_same_decisions(tmp_path: Path) -> None:
    path = tmp_path / "commands.sqlite"

    async def scenario() -> None:
        extra = {"raw_engine_data": {"secret": "Go to the cellar.", "ticks": list(range(9))}}
        await life(await joined(Hamlet(extra=extra)), path, Heartbeat())

    asyncio.run(scenario())
    blind = Heartbeat(blind=True)
    with CommandLog(path, read_only=True) as log:
        logged = list(everything(log, Filter()))
    assert len(logged) == BEATS
    for one in logged:
        seen = PerceptionOutput.model_validate(one.perception)
        assert seen.raw_engine_data
        again = blind.decide(seen)
        assert (again.command, dict(again.params), again.reasoning) == (
            one.record.command, dict(one.record.params), one.record.reasoning,
        )  # fmt: skip
