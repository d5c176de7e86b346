"""Writes a run's events to the event log.

Kinds: `run` (started, resumed, stopped), `episode` (its seed), `observation` (where it differs from the last result's),
`plan`, `chosen` and `left` (in runs of several seats: a choice and a removal, before the world is told), `step`,
`decision` (model usage added to a step later), `death`, `lessons`, `snapshot`, `totals`; of a world that lives `tick`,
`influence` and `rewound` (to an earlier tick); of language models `model`, `asked`, `call`, `given` (to the world),
`refusal` (of a constraint) and `failure`; of tools `tools` (their descriptions) and `tool` (a call).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wsap_core.protocol import Action, ActionResult, DeathEvent, Observation
from wsap_core.protocol.wire import dumps
from wsap_core.seams.agent import DecisionInfo
from wsap_nexus.runs.record.logged import decision_body, snapshot_body
from wsap_nexus.runs.record.moments import moment_of_death, moments_of_step
from wsap_nexus.runs.record.replay_order import OpenChoices
from wsap_nexus.runs.record.trajectory import WORLD

if TYPE_CHECKING:
    from wsap_nexus.store.log.eventlog import LogWriter


class Recorder:
    """Writes a run's events; without a log it writes nothing.

    Args:
        careful: whether each request of a seat to a model is committed before it is sent, together with the previous
            reply: after a crash at most one call of each seat is repeated, and the log shows which.
    """

    def __init__(self, log: LogWriter | None, run_id: str | None, *, careful: bool = False) -> None:
        self.careful = careful
        """Whether requests are committed before they are sent."""
        self._log = log
        self._run_id = run_id
        self.name = run_id or secrets.token_hex(8)
        """A unique name of the run, recorded or not."""
        self._shown: dict[str, str] = {}
        self.open_choices = OpenChoices()
        self.latest = -1
        """The number of the last event; -1 before the first."""
        self.moved = -1
        """The number of the last event whose order counts in a replay: a seat observed, chose, or was removed."""
        self.agents: dict[str, str] = {}
        """Seat -> the agent of the nexus in it."""
        self._died: dict[str, tuple[int, int]] = {}

    def episode(self, episode: int, seed: int) -> None:
        """Record the start of an episode for all seats."""
        self._shown.clear()
        self._write("episode", dumps({"seed": seed}), episode=episode)

    def observation(self, seat: str, episode: int, step: int, observation: Observation, *, again: bool = False) -> None:
        """Record a seat's observation, unless its last result had the same one, or it observes `again` in a replay."""
        if self._log is None:
            return
        text = dumps(observation)
        if self._shown.get(seat) != text:
            self._shown[seat] = text
            if again:
                return
            self._move("observation", text, seat=seat, episode=episode, step=step)

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
        worked: Mapping[str, int],
    ) -> None:
        """Record a resolved step with its moments: its canonical line, the reasoning, and the decision's info.

        `worked` is how often the seat has succeeded at what, with this step: `achievement:NAME` -> number.
        """
        if self._log is None:
            return
        moments = moments_of_step(result, worked)
        if any(moment.kind == "died" for moment in moments):
            self._died[seat] = (episode, step)
        self._shown[seat] = dumps(result.observation)
        body = (
            '{"decision":' + decision_body(info) + ',"reasoning":' + dumps(action.reasoning) + ',"step":' + line + "}"
        )
        told = {"moments": moments, "agent": self.agents.get(seat, "")} if moments else {}
        self._write("step", body, seat=seat, episode=episode, step=step, **told)
        self.open_choices.resolved(seat)

    def chosen(
        self, seat: str, episode: int, step: int, action: Action, info: DecisionInfo | None, *, after: int
    ) -> None:
        """Record a seat's choice before the world is told.

        Args:
            episode: counted from 0.
            step: the number of the step to come.
            after: the last event when the seat observed.
        """
        if self._log is None:
            return
        parts = {"name": action.name, "parameters": action.parameters}
        body = '{"action":' + dumps(parts) + f',"after":{after},"decision":' + decision_body(info)
        self._move(
            "chosen", body + ',"reasoning":' + dumps(action.reasoning) + "}", seat=seat, episode=episode, step=step
        )
        self.open_choices.chosen(seat, self.latest)

    def left(self, seat: str, episode: int, step: int) -> None:
        """Record the removal of a seat before the world is told; `step` would have been next."""
        self._move("left", "{}", seat=seat, episode=episode, step=step)

    def death(self, seat: str, episode: int, step: int, death: DeathEvent) -> None:
        """Record an avatar's death, as a moment if its step did not tell of it."""
        told = {} if self._died.get(seat) == (episode, step) else {"moments": (moment_of_death(death),)}
        agent = self.agents.get(seat, "")
        self._write("death", dumps(death), seat=seat, episode=episode, step=step, agent=agent, **told)

    def lessons(self, seat: str, episode: int, step: int, lines: Sequence[str]) -> None:
        """Record an agent's lessons after a decision, possibly none."""
        self._write("lessons", dumps({"lessons": list(lines)}), seat=seat, episode=episode, step=step)

    def tick(self, episode: int, number: int, line: str, *, after: int | None = None) -> None:
        """Record a tick: its canonical line and, with seats, the last event when it started."""
        begun = "" if after is None else f'"after":{after},'
        self._write("tick", "{" + begun + line[1:], seat=WORLD, episode=episode, step=number)

    def influence(self, episode: int, body: Mapping[str, Any], number: int | None, **outcome: str) -> None:
        """Record an influence with its outcome, `said` or `refused`; it leaves the inbox if it has a `number` there."""
        takes = {} if number is None else {"takes": number}
        self._write("influence", dumps({"body": body, **outcome}), seat=WORLD, episode=episode, **takes)

    def snapshot(
        self, episode: int, world: bytes, agents: Mapping[str, bytes], seats: Mapping[str, Any] | None = None,
        tick: int | None = None,
    ) -> None:  # fmt: skip
        """Record the whole state (world, agents, loops) between two decisions or after a tick."""
        self._write("snapshot", snapshot_body(world, agents, seats), episode=episode, step=tick)

    def keep_state(
        self, tick: int, world: bytes, agents: Mapping[str, bytes], seats: Mapping[str, Any], *, whole: bool
    ) -> None:
        """Keep the state after a tick in place of the one kept before, rather than as an event."""
        if self._log is not None and self._run_id is not None:
            self._log.keep_state(self._run_id, tick, snapshot_body(world, agents, seats), whole=whole)

    def rewound(
        self, to: int, world: bytes, agents: Mapping[str, bytes] | None = None, seats: Mapping[str, Any] | None = None,
        **why: str,
    ) -> None:  # fmt: skip
        """Record that a world goes back to an earlier tick, and its state after that tick.

        Args:
            agents: the states of the agents in its seats.
            seats: the states of the loops of its seats.
            why: the reason, if it goes back by itself.
        """
        self._write("rewound", dumps({"to": to, **why}))
        self.snapshot(0, world, agents or {}, seats, tick=to)

    def totals(self, body: Mapping[str, Any], steps: int) -> int:
        """Record the totals after so many steps of all seats, and return the event's number."""
        self._write("totals", dumps(body), step=steps)
        return self.latest

    async def committed(self) -> None:
        """Return when everything recorded so far is committed (waiters share a commit); StorageError if it can't be."""
        if self._log is None:
            return
        await self._log.flushed()

    def asked(self, keys: Sequence[str], *, seat: str | None = None, failed: str | None = None) -> None:
        """Record the requests that the world, or a seat's agent, sends to models, and one that `failed`."""
        self._write("asked", dumps({"keys": list(keys), **({"failed": failed} if failed else {})}), seat=seat)

    def decision(self, seat: str, episode: int, step: int, info: DecisionInfo) -> None:
        """Record model usage added to a decision after its step was logged, such as a memory's summary."""
        self._write("decision", dumps(info), seat=seat, episode=episode, step=step)

    def note(self, what: str, **more: Any) -> None:
        """Record that the run started, was resumed, or stopped."""
        self._write("run", dumps({"what": what, **more}))

    def write(self, kind: str, body: str | Mapping[str, Any], *, seat: str | None = None, episode: int = 0) -> None:
        """Record another event of the run or a seat, with its body as canonical JSON or as data."""
        self._write(kind, body if isinstance(body, str) else dumps(dict(body)), seat=seat, episode=episode)

    def _move(self, kind: str, body: str, **where: Any) -> None:
        self._write(kind, body, **where)
        self.moved = self.latest

    def _write(self, kind: str, body: str, **where: Any) -> None:
        """Append an event; `where` is as in `LogWriter.append`."""
        if self._log is not None and self._run_id is not None:
            self.latest = self._log.append(self._run_id, kind, body, **where)
