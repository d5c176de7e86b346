"""A run's events: how they are written to the event log.

Kinds: `episode` (its seed), `observation` (what a seat saw, where that is not what its last
result showed), `plan`, `chosen` and `left` (in runs of several seats: what a seat chose, and that it
was taken out, before the world hears of it), `step`, `decision` (what a step has come to take since),
`tick` (of a world that lives), `influence` (from outside it), `rewound` (to an earlier tick),
`death`, `snapshot`, `totals` (what was counted so far), `model`, `asked`, `call`, `refusal` and `failure` (what
was asked of language models, and what they would not do or could not be asked), `tools` and `tool`
(what tools there are, and what they were asked), and `run` (started, resumed, stopped).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wsap_core.protocol import Action, ActionResult, DeathEvent, Observation
from wsap_core.protocol.wire import dumps
from wsap_core.seams.agent import DecisionInfo
from wsap_nexus.runs.logged import decision_body, snapshot_body
from wsap_nexus.runs.replay_order import OpenChoices
from wsap_nexus.runs.trajectory import WORLD

if TYPE_CHECKING:
    from wsap_nexus.store.eventlog import LogWriter


class Recorder:
    """Writes a run's events; with no log it writes nothing.

    Args:
        careful: whether every request of a seat to a model is committed before it is sent, and with it the reply to the
            one before: a process that dies has one call of each seat to make again, at most, and that is known.
    """

    def __init__(self, log: LogWriter | None, run_id: str | None, *, careful: bool = False) -> None:
        self.careful = careful
        """Whether requests are committed before they are sent."""
        self._log = log
        self._run_id = run_id
        self.name = run_id or secrets.token_hex(8)
        """Names the run among all runs, also one that is not recorded."""
        self._shown: dict[str, str] = {}
        self.open_choices = OpenChoices()
        """Of the seats in a run of several."""
        self.latest = -1
        """The number of the last event; -1 before the first."""

    def episode(self, episode: int, seed: int) -> None:
        """Record that an episode begins for all seats."""
        self._shown.clear()
        self._write("episode", dumps({"seed": seed}), episode=episode)

    def observation(self, seat: str, episode: int, step: int, observation: Observation, *, again: bool = False) -> None:
        """Record what a seat sees, unless its last result showed just that, or it sees `again` what is recorded."""
        if self._log is None:
            return
        text = dumps(observation)
        if self._shown.get(seat) != text:
            self._shown[seat] = text
            if again:
                return
            self._write("observation", text, seat=seat, episode=episode, step=step)

    def plan(self, seat: str, episode: int, lines: list[str]) -> None:
        """Record an agent's plan."""
        self._write("plan", dumps({"plan": lines}), seat=seat, episode=episode)

    def step(
        self,
        seat: str,
        episode: int,
        step: int,
        line: str,
        action: Action,
        result: ActionResult,
        info: DecisionInfo | None,
    ) -> None:
        """Record a resolved step: its canonical line, why, and how the decision came about."""
        if self._log is None:
            return
        self._shown[seat] = dumps(result.observation)
        body = (
            '{"decision":' + decision_body(info) + ',"reasoning":' + dumps(action.reasoning) + ',"step":' + line + "}"
        )
        self._write("step", body, seat=seat, episode=episode, step=step)
        self.open_choices.resolved(seat)

    def chosen(
        self, seat: str, episode: int, step: int, action: Action, info: DecisionInfo | None, *, after: int
    ) -> None:
        """Record a seat's choice, before the world hears of it.

        Args:
            episode: counted from 0.
            step: the number of the step that will come of it.
            action: what it chose, or what was chosen for it.
            after: the last event when the seat saw what it chose upon.
        """
        if self._log is None:
            return
        parts = {"name": action.name, "parameters": action.parameters}
        body = '{"action":' + dumps(parts) + f',"after":{after},"decision":' + decision_body(info)
        self._write(
            "chosen", body + ',"reasoning":' + dumps(action.reasoning) + "}", seat=seat, episode=episode, step=step
        )
        self.open_choices.chosen(seat, self.latest)

    def left(self, seat: str, episode: int, step: int) -> None:
        """Record the removal of a seat, before the world hears of it; `step` would have been next."""
        self._write("left", "{}", seat=seat, episode=episode, step=step)

    def death(self, seat: str, episode: int, step: int, death: DeathEvent) -> None:
        """Record what an avatar died of."""
        self._write("death", dumps(death), seat=seat, episode=episode, step=step)

    def lessons(self, seat: str, episode: int, step: int, lines: Sequence[str]) -> None:
        """Record what an agent learned from reflecting after a decision; it may be nothing."""
        self._write("lessons", dumps({"lessons": list(lines)}), seat=seat, episode=episode, step=step)

    def tick(self, episode: int, number: int, line: str, *, after: int | None = None) -> None:
        """Record a tick of a world that lives: its canonical line, and the last event when it began, among seats."""
        begun = "" if after is None else f'"after":{after},'
        self._write("tick", "{" + begun + line[1:], seat=WORLD, episode=episode, step=number)

    def influence(self, episode: int, body: Mapping[str, Any], number: int | None, **outcome: str) -> None:
        """Record an influence as number so and so leaves the inbox: what was `said` about it, or why `refused`."""
        takes = {} if number is None else {"takes": number}
        self._write("influence", dumps({"body": body, **outcome}), seat=WORLD, episode=episode, **takes)

    def snapshot(
        self, episode: int, world: bytes, agents: Mapping[str, bytes], seats: Mapping[str, Any] | None = None,
        tick: int | None = None,
    ) -> None:  # fmt: skip
        """Record the whole state between two decisions, or after a tick: world, agents, and loops."""
        self._write("snapshot", snapshot_body(world, agents, seats), episode=episode, step=tick)

    def rewound(self, to: int, world: bytes) -> None:
        """Record that a world that lives alone goes back to an earlier tick, and its state after that."""
        self._write("rewound", dumps({"to": to}))
        self.snapshot(0, world, {}, tick=to)

    def totals(self, body: Mapping[str, Any], steps: int) -> int:
        """Record what was counted so far, after so many steps of all seats, and return the number of the event."""
        self._write("totals", dumps(body), step=steps)
        return self.latest

    async def committed(self) -> None:
        """Return when everything recorded so far is committed; those who wait at the same time share a commit.

        Raises:
            StorageError: it can't be committed.
        """
        if self._log is None:
            return
        await self._log.flushed()

    def asked(self, keys: Sequence[str], *, seat: str | None = None, failed: str | None = None) -> None:
        """Record which requests the world, or the agent of a seat, sends to models; and one that gave no reply."""
        self._write("asked", dumps({"keys": list(keys), **({"failed": failed} if failed else {})}), seat=seat)

    def decision(self, seat: str, episode: int, step: int, info: DecisionInfo) -> None:
        """Record model usage added to a decision after its step was logged, such as a memory's summary."""
        self._write("decision", dumps(info), seat=seat, episode=episode, step=step)

    def note(self, what: str, **more: Any) -> None:
        """Record that the run started, was resumed, or stopped."""
        self._write("run", dumps({"what": what, **more}))

    def write(self, kind: str, body: str | Mapping[str, Any], *, seat: str | None = None, episode: int = 0) -> None:
        """Record something else about the run, or about a seat: canonical JSON, or what it is to be made of."""
        self._write(kind, body if isinstance(body, str) else dumps(dict(body)), seat=seat, episode=episode)

    def _write(self, kind: str, body: str, **where: Any) -> None:
        """Append an event; `where` is as in `LogWriter.append`."""
        if self._log is not None and self._run_id is not None:
            self.latest = self._log.append(self._run_id, kind, body, **where)
