"""The conformance suite of bridges and engines: one set of checks for every `BridgePort`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Literal

from wsap_core.errors import UnknownNameError, UsageError, WsapError
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.untrusted import single_line
from wsap_tes3mp.engines.engine import BridgePort
from wsap_tes3mp.protocol import errors
from wsap_tes3mp.protocol.bridge import BridgeStatus, ItemsRequest, JoinRequest
from wsap_tes3mp.protocol.commands import FINAL, CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.perception import ENTITY_TYPES, InventoryItem, PerceptionOutput

Status = Literal["passed", "failed", "skipped"]
GUEST = "conformance-check"
"""The agent that the suite adds, if the engine lets it join."""
PATIENCE = 30.0
"""Seconds a command may take to finish."""
_POLL = 0.1
_NO_TOKEN = ("UNAUTHORIZED", "FORBIDDEN")


@dataclass(frozen=True)
class CheckResult:
    """The result of one check."""

    name: str
    summary: str
    """The promise it checks."""
    status: Status
    reason: str = ""
    """What was wrong, or why it was skipped."""


class _FailedError(Exception): ...


class _SkippedError(Exception): ...


@dataclass
class _Subject:
    port: BridgePort
    agent: str | None
    act: bool
    clock: Clock
    status: BridgeStatus | None = None
    guest: JoinRequest | None = None
    """How the suite's own agent joined."""
    deserted: bool = False
    """Whether no agent is there to perceive and act as."""
    notes: list[str] = field(default_factory=list)

    @property
    def abilities(self) -> Sequence[str]:
        """The engine's optional features."""
        return (self.status and self.status.abilities) or ()

    @property
    def offers(self) -> bool:
        """Whether the bridge has the additions of 1.1.0."""
        return self.status is not None and self.status.abilities is not None

    def needs(self, ability: str) -> None:
        if ability not in self.abilities:
            raise _SkippedError(f"the engine does not offer {ability!r}")

    def adds(self, what: str) -> None:
        if not self.offers:
            raise _SkippedError(f"the bridge has only the endpoints of protocol 1.0.0, without {what}")

    def acts(self, *, alone: bool = False) -> None:
        """Skip a check without `--act`, and one that needs an agent where there is none, unless it is `alone`."""
        if not self.act:
            raise _SkippedError("it acts in the world; allow that with --act")
        if not alone:
            self.sees()

    def sees(self) -> None:
        if self.deserted:
            raise _SkippedError("no agent is in the game; let one join, and check again")

    async def name(self) -> str:
        if self.deserted:
            return GUEST  # for commands that are refused whoever sends them
        if self.agent is None:
            self.agent = (await self.port.perception()).agent_id
        return self.agent

    async def see(self) -> PerceptionOutput:
        self.sees()
        return await self.port.perception(self.agent)

    async def command(self, command: str, **params: Any) -> CommandAccepted:
        return await self.port.command(await self.input(command, **params))

    async def input(self, command: str, **params: Any) -> CommandInput:
        return CommandInput(
            timestamp=datetime.now(UTC), agent_id=await self.name(), command=command, params=params,
            reasoning="A check of the bridge's conformance.", episode_id="conformance",
        )  # fmt: skip

    async def outcome(self, command_id: str, *, takes: float = 0.0) -> Outcome:
        """Return the final outcome of a command that takes so many seconds."""
        patience = PATIENCE + takes
        found = await self.port.outcome(command_id, wait=patience)
        _need(found.state in FINAL, f"the command did not finish within {patience:g} s; it is {found.state!r}")
        return found

    async def done(self, command: str, **params: Any) -> Outcome:
        """Execute a command and return its outcome."""
        accepted = await self.command(command, **params)
        found = await self.outcome(accepted.command_id)
        _need(found.command_id == accepted.command_id, "the outcome is of another command")
        _need(found.state in ("confirmed", "failed"), f"{command} ended as {found.state!r}: {found.message}")
        if found.state == "failed":
            _need(bool(found.code and found.message), f"{command} failed without code and message")
        return found


def _need(kept: bool, otherwise: str) -> None:
    if not kept:
        raise _FailedError(otherwise)


async def _refused(work: Awaitable[object], *kinds: type[WsapError]) -> WsapError:
    """Return the error, one of these classes, that refuses something."""
    names = " or ".join(kind.code for kind in kinds)
    try:
        await work
    except kinds as error:
        return error
    except errors.BridgeError as error:
        if _code(error) in _NO_TOKEN:
            raise
        raise _FailedError(f"it was refused as {_code(error)} ({error}) instead of {names}") from error
    raise _FailedError(f"it was accepted instead of refused as {names}")


def _code(error: WsapError) -> str:
    return str(getattr(error, "told", "")) or error.code


async def _status(subject: _Subject) -> None:
    """The status fits the schema, its version is supported, and the engine is connected."""
    subject.status = await subject.port.status()
    _need(subject.status.bridge_connected, "the engine is not connected; the other checks need it")
    if not subject.offers:
        subject.notes.append("The bridge has only the endpoints of protocol 1.0.0.")
    subject.deserted = await _is_deserted(subject)


async def _is_deserted(subject: _Subject) -> bool:
    agents = subject.status.agents if subject.status is not None else None
    if agents is not None:
        return not agents
    try:
        await subject.port.perception(subject.agent)
    except errors.BridgeUnavailableError:
        return True
    except errors.BridgeError:
        pass  # the check of perceptions says what is wrong
    return False


async def _perception(subject: _Subject) -> None:
    """A perception fits the schema and belongs to the requested agent."""
    seen = await subject.see()
    _need(subject.agent in (None, seen.agent_id), f"it belongs to {seen.agent_id!r}")
    subject.agent = seen.agent_id
    if new := sorted({entity.entity_type for entity in seen.nearby_entities} - set(ENTITY_TYPES)):
        subject.notes.append(f"The engine has entity types of its own: {', '.join(new)}.")


async def _order(subject: _Subject) -> None:
    """Perceptions are in order: within a boot, neither their time nor their sequence goes back."""
    first, second = await subject.see(), await subject.see()
    if first.boot_id != second.boot_id:
        return
    _need(second.timestamp >= first.timestamp, "the timestamp went back")
    if first.sequence is not None and second.sequence is not None:
        _need(second.sequence >= first.sequence, "the sequence went back")
        leave = {"timestamp", "raw_engine_data"}
        same = first.model_dump(exclude=leave) == second.model_dump(exclude=leave)
        _need(same or first.sequence != second.sequence, "two perceptions with one sequence number differ")


async def _additions(subject: _Subject) -> None:
    """A bridge of 1.1.0 has boot, sequence, inventory, agents and outcomes."""
    subject.adds("boots, sequences and agents")
    seen = await subject.see()
    _need(seen.boot_id is not None and seen.sequence is not None, "the perception lacks boot_id or sequence")
    agents = await subject.port.agents()
    _need(await subject.name() in {agent.agent_id for agent in agents}, "the agent is not among the agents")
    if seen.inventory is not None:
        count = sum(item.count for item in seen.inventory)
        _need(count >= seen.inventory_summary.item_count, "the inventory has fewer items than its summary says")
    await _refused(subject.port.outcome("cmd_of_nobody"), UnknownNameError, errors.BridgeError)


async def _unknown_agent(subject: _Subject) -> None:
    """The perception of an unknown agent is refused."""
    subject.sees()
    asked = subject.port.perception("nobody-of-this-name")
    try:
        error = await _refused(asked, errors.PayloadError, errors.SchemaMismatchError)
    except _FailedError:
        subject.adds("perceptions by agent_id")
        raise
    _need(not subject.offers or isinstance(error, errors.PayloadError), f"it was refused as {error.code}")


async def _refusals(subject: _Subject) -> None:
    """Unknown commands, invalid parameters and newer major versions are refused with the seed's codes."""
    await _refused(subject.command("no_such_command", duration_seconds=-1), errors.InvalidCommandError)
    await _refused(subject.command("wait", duration_seconds="long"), errors.PayloadError)
    await _refused(subject.command("dialogue"), errors.PayloadError)
    newer = (await subject.input("noop")).model_copy(update={"protocol_version": "9.0.0"})
    await _refused(subject.port.command(newer), errors.SchemaMismatchError)


async def _join(subject: _Subject) -> None:
    """An agent gets a body, the same one if it joins again, and can perceive."""
    subject.acts(alone=True)
    subject.needs("join")
    for embodiment in ("avatar", "companion"):  # some engines only accept players as avatars
        request = JoinRequest.model_validate({"agent_id": GUEST, "embodiment": embodiment})
        try:
            await subject.port.join(request)
            break
        except errors.BridgeError as error:
            if embodiment == "companion":
                raise _SkippedError(f"no body for a new agent: {error}") from error
    subject.agent, subject.guest, subject.deserted = GUEST, request, False
    second = await subject.port.join(request)
    _need(second.agent_id == GUEST and second.connected, "the agent did not get its body")
    await subject.see()


async def _noop(subject: _Subject) -> None:
    """`noop` and `journal_note` are accepted and confirmed at once."""
    subject.acts()
    note = await subject.command("journal_note", content="A check.", tags=["conformance"])
    for accepted in (note, await subject.command("noop")):
        if subject.offers:
            found = await subject.port.outcome(accepted.command_id)
            _need(found.state == "confirmed", f"its state is {found.state!r}")


async def _wait(subject: _Subject) -> None:
    """A command is accepted and executed, and a newer perception shows it."""
    subject.acts()
    before = await subject.see()
    if not subject.offers:
        await subject.command("wait", duration_seconds=1)
        await _comes(subject, lambda seen: seen.timestamp != before.timestamp)
        return
    found = await subject.done("wait", duration_seconds=1)
    _need(found.state == "confirmed", f"wait failed: {found.message}")
    await _comes(subject, lambda seen: (seen.sequence or 0) >= (found.sequence or 0))


async def _comes(subject: _Subject, wanted: Callable[[PerceptionOutput], bool]) -> None:
    until = subject.clock.now() + PATIENCE
    while not wanted(await subject.see()):
        _need(subject.clock.now() < until, "no newer perception followed a command")
        await subject.clock.sleep(_POLL)


async def _ends(subject: _Subject) -> None:
    """Commands end as confirmed, or as failed with code and message; nonexistent targets fail."""
    subject.acts()
    subject.adds("outcomes of commands")
    place = (await subject.see()).location
    await subject.done("move_to", target_cell=place.cell, target_x=place.x, target_y=place.y, target_z=place.z)
    for command, params in (
        ("move_to", {"target_entity_id": "nothing-of-this-id"}),
        ("interact", {"entity_id": "nothing-of-this-id"}),
        ("use_item", {"item_id": "nothing_of_this_id"}),
        ("combat_action", {"action_type": "attack", "target_entity_id": "nothing-of-this-id"}),
        ("dialogue", {"entity_id": "nothing-of-this-id", "topic": "nothing"}),
    ):
        found = await subject.done(command, **params)
        _need(found.state == "failed", f"{command} on a nonexistent target was confirmed")


async def _once(subject: _Subject) -> None:
    """A command repeated with its idempotency key is not executed again; another command is refused."""
    subject.acts()
    subject.adds("idempotency keys")
    key, command = token_hex(), await subject.input("wait", duration_seconds=0.2)
    first = await subject.port.command(command, key=key)
    again = await subject.port.command(command, key=key)
    _need(first.command_id == again.command_id, "the repeated command was accepted as a new one")
    other = command.model_copy(update={"reasoning": "Another one."})
    await _refused(subject.port.command(other, key=key), errors.KeyReusedError)
    await subject.outcome(first.command_id)


async def _busy(subject: _Subject) -> None:
    """While a command is running, another is refused with COMMAND_CONFLICT, and `noop` is accepted."""
    subject.acts()
    subject.adds("outcomes of commands")
    # A refused client retries for 3 s; if time runs fast, the first command may end too soon.
    for seconds in (8, 300):
        accepted = await subject.command("wait", duration_seconds=seconds)
        if (await subject.port.outcome(accepted.command_id)).state not in FINAL:
            await subject.command("noop")
            try:
                other = await subject.command("wait", duration_seconds=0)
            except errors.CommandConflictError:
                await subject.outcome(accepted.command_id, takes=seconds)
                return
            ended = (await subject.port.outcome(accepted.command_id)).state in FINAL
            _need(ended, "two commands of one agent were running at the same time")
            await subject.outcome(other.command_id)
    raise _SkippedError("the engine's time is stepped, or so fast that no command is ever seen running")


async def _items(subject: _Subject) -> None:
    """Items are added and removed, once per transfer."""
    subject.acts()
    subject.needs("items")
    agent, before = await subject.name(), (await subject.see()).inventory_summary.gold
    gold = (InventoryItem(item_id="gold_001", name="Gold", count=3),)
    request = ItemsRequest(transfer_id=token_hex(), give=gold)
    first = await subject.port.transfer(agent, request)
    _need(await subject.port.transfer(agent, request) == first, "a repeated transfer has a different receipt")
    await subject.port.transfer(agent, ItemsRequest(transfer_id=token_hex(), take=first.given))
    after = (await subject.see()).inventory_summary.gold
    _need(after == before, f"after adding and removing gold, the balance differs by {after - before}")


async def _leave(subject: _Subject) -> None:
    """An agent leaves, returns to the same place, and leaves for good."""
    subject.acts()
    subject.needs("join")
    if subject.guest is None:
        raise _SkippedError("the suite's own agent could not join")
    where = (await subject.see()).location
    await subject.port.leave(GUEST, "dormant")
    await subject.port.join(subject.guest)
    _need((await subject.see()).location.cell == where.cell, "the agent returned to another place")
    await subject.port.leave(GUEST, "despawn")
    left = [agent for agent in await subject.port.agents() if agent.agent_id == GUEST and agent.connected]
    _need(not left, "the agent is still there after it left")
    subject.agent = subject.guest = None


CHECKS: Mapping[str, Callable[[_Subject], Awaitable[None]]] = {
    "status": _status, "join": _join, "perception": _perception, "order": _order, "additions": _additions,
    "unknown_agent": _unknown_agent, "refusals": _refusals, "unhindered": _noop, "wait": _wait, "ends": _ends,
    "once": _once, "busy": _busy, "items": _items, "leave": _leave,
}  # fmt: skip
"""Name -> check, in running order."""


async def run_checks(
    port: BridgePort,
    *,
    agent: str | None = None,
    act: bool = False,
    only: Sequence[str] = (),
    clock: Clock | None = None,
    progress: Callable[[CheckResult], None] = lambda result: None,
) -> list[CheckResult]:
    """Check a bridge, or an engine through a bridge, and return the results.

    Args:
        agent: who perceives and acts; by default, with `act`, a new agent if one can join, else the only one.
        act: let the agent act in the world; without it, no command is sent that a bridge could execute.
        only: names of checks to run besides `status`; all if empty.
        clock: for waits.
        progress: called with each result.

    Raises:
        UnknownNameError: there is no such check.
        UsageError: there are several agents, and none is named.
    """
    for name in only:
        if name not in CHECKS:
            raise UnknownNameError("check", name, CHECKS)
    subject = _Subject(port, agent, act, clock or SystemClock())
    results = []
    for name, check in CHECKS.items():
        wanted = not only or name in (*only, "status") or (name == "join" and "leave" in only)
        if not wanted or (name == "join" and agent is not None):
            continue
        results.append(await _run(name, check, subject))
        progress(results[-1])
        if name == "status":
            if results[-1].status == "failed":
                break
            agents = (subject.status and subject.status.agents) or ()
            if agent is None and len(agents) > 1 and set(only) != {name} and not (act and "join" in subject.abilities):
                named = ", ".join(map(single_line, agents))
                raise UsageError(f"There are several agents; name one of them with --agent: {named}.")
    if subject.guest is not None:
        await port.leave(GUEST, "despawn")
    return results


async def _run(name: str, check: Callable[[_Subject], Awaitable[None]], subject: _Subject) -> CheckResult:
    subject.notes.clear()
    status: Status = "passed"
    reason, summary = "", " ".join((check.__doc__ or "").split())
    try:
        await check(subject)
    except (_SkippedError, errors.NotOfferedError) as error:
        status, reason = "skipped", str(error)
    except _FailedError as error:
        status, reason = "failed", str(error)
    except WsapError as error:
        status, reason = "failed", f"{_code(error)}: {error}"
        if _code(error) in _NO_TOKEN:
            # Without the status nothing can be checked.
            status = "failed" if name == "status" else "skipped"
            reason = "the bridge requires a token; give its file with --token-file"
    return CheckResult(name, summary, status, reason or " ".join(subject.notes))
