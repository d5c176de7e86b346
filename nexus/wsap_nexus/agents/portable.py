"""An agent as one file, to be kept, copied, or taken to another nexus.

What goes with it: who it is and its persona, who decides for it, skills with their evidence,
achievements, core memories and strategies, its meta-goals, its diary, its mind; and, when it *moves*, the
items in its keeping. What stays: worlds and the bodies that sleep in them, items that it left
there, recordings, letters, tokens, and the nexus' log.

Items are never doubled. A copy brings none. An agent that moves is gone from here (removed, its
items with it), its file carries the number of the move, and a nexus lets each move in once; the
nexus that it left lets it in again as well, which takes a move back. An item that a nexus knows in
another place is not let in. Nothing but the person who has the file keeps it from being let in at
two other nexuses.

The file: one line of JSON (`{"wsap-agent": 1, "agent": ..., "size": ..., "sha256": ...}`), then JSON
compressed with zstd. There are no paths in it, nothing in it is executed, and who decides is
taken from it only if a person says so, since that can name programs and addresses.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import zstandard
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import insert, select, update

from wsap_core.errors import ProtocolVersionError, StorageError, UsageError, WireError, WsapError
from wsap_core.protocol import PortableItem
from wsap_core.protocol.wire import Codec, dumps, encode
from wsap_core.untrusted import one_line
from wsap_nexus.errors import ConservationError, TransitError
from wsap_nexus.store.book import Book
from wsap_nexus.store.entities import AGENT_ID, Policy
from wsap_nexus.store.events import AgentImported, AgentMovedAway, AgentRemoved, DiaryWritten, ItemMoved, SkillGained
from wsap_nexus.store.tables import METADATA

FORMAT = 1
"""The version of the file; a newer one is refused."""

LARGEST_FILE = 64 << 20
"""Bytes that a file may have."""

LARGEST = 256 << 20
"""Bytes that may be in it once it is unpacked."""

_HEADER = 4096
_NAME = "wsap-agent"
_AWAY = "away:"
# What stands where an item was last, before the number of the move that took it.

_T = METADATA.tables
_AGENT, _SKILL, _EVIDENCE, _ACHIEVEMENT = _T["agent"], _T["skill"], _T["evidence"], _T["achievement"]
_ITEM, _GOAL, _AVATAR = _T["item"], _T["metagoal"], _T["avatar"]

_Short = Annotated[str, Field(max_length=200)]
_Count = Annotated[int, Field(ge=0, le=2**53)]
_Level = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Identity(_Strict):
    """Who it is."""

    id: str = Field(pattern=AGENT_ID)
    name: _Short
    created: str = Field(max_length=40)
    persona: str = Field(max_length=10_000)
    core_memories: list[Annotated[str, Field(max_length=10_000)]] = Field(max_length=10_000)
    strategies: list[Annotated[str, Field(max_length=10_000)]] = Field(max_length=10_000)
    lifetime_steps: int = Field(ge=0, lt=2**31)
    playtime: float = Field(ge=0, allow_inf_nan=False)


class PackedPolicy(_Strict):
    """Who decides for it somewhere."""

    agent: _Short
    options: dict[str, Any] = Field(max_length=1000)  # Any: as the agent reads them


class Evidence(_Strict):
    """What a skill was gained by."""

    domain: _Short
    game: _Short
    source: _Short
    times: _Count
    gained: float = Field(ge=0, le=1, allow_inf_nan=False)


class Achieved(_Strict):
    """What it achieved."""

    game: _Short
    name: _Short
    first: str = Field(max_length=40)
    times: _Count


class PackedGoal(_Strict):
    """A meta-goal; what was counted for one that is still open stays behind with the log."""

    id: _Short
    state: Literal["active", "reached", "abandoned"]
    data: dict[str, Any] = Field(max_length=100)  # Any: as the goals read it


class PackedEntry(_Strict):
    """An entry of its diary."""

    written: str = Field(max_length=40)
    """ISO 8601, UTC."""
    game: _Short | None
    text: str = Field(max_length=10_000)
    own_words: bool


class Left(_Strict):
    """What stays behind."""

    bodies: _Count
    items: _Count


class Package(_Strict):
    """Everything in the file."""

    agent: Identity
    policies: dict[str, PackedPolicy] = Field(max_length=1000)
    skills: dict[_Short, _Level] = Field(max_length=1000)
    evidence: list[Evidence] = Field(max_length=1_000_000)
    achievements: list[Achieved] = Field(max_length=1_000_000)
    items: list[dict[str, Any]] = Field(max_length=100_000)  # Any: portable items as JSON
    goals: list[PackedGoal] = Field(max_length=10_000)
    diary: list[PackedEntry] = Field(max_length=1_000_000)
    mind: str | None
    """Base64 of what its memory gave to keep."""
    move: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None
    """The number of the move; None for a copy."""
    left: Left


@dataclass(frozen=True)
class Arrived:
    """What came of an import."""

    agent_id: str
    items: int
    """Items that are in its keeping now."""
    policies_left_out: tuple[str, ...]
    """"crafter: llm" and the like: who decided for it where it comes from, and was not taken over."""


class ExportError(UsageError):
    """The agent can't be exported as it stands."""

    code = "EXPORT_REFUSED"


class ImportRefusedError(TransitError):
    """The nexus does not let the agent in."""

    code = "IMPORT_REFUSED"


# --- out --------------------------------------------------------------------------------------


def pack(book: Book, agent_id: str, *, move: str | None = None) -> Package:
    """Return everything of an agent that goes into its file; nothing changes by that.

    Args:
        book: where it lives.
        agent_id: which.
        move: the number of the move; None for a copy, which has no items in it.

    Raises:
        UnknownNameError: there is no such agent.
    """
    agent = book.agent(agent_id)
    items = book.items(agent_id)
    # Those that went with an earlier try of the same move are in it again.
    carried = [r for r in items if r.place == "escrow" or (move is not None and r.place_id == _AWAY + move)]
    goals = book.connection.execute(select(_GOAL).where(_GOAL.c.agent_id == agent_id).order_by(_GOAL.c.id)).all()
    bodies = [b for b in book.avatars(agent_id) if b.avatar.state.value not in ("destroyed", "unbound")]
    mind = book.mind(agent_id)
    return Package(
        agent=Identity(
            id=agent.id,
            name=agent.name,
            created=agent.created,
            persona=agent.persona,
            core_memories=list(agent.core_memories),
            strategies=list(agent.strategies),
            lifetime_steps=agent.lifetime_steps,
            playtime=float(agent.playtime),
        ),
        policies={
            game: PackedPolicy(agent=p.agent, options=dict(p.options)) for game, p in sorted(agent.policies.items())
        },
        skills=book.skills(agent_id),
        evidence=[
            Evidence(domain=r.domain, game=r.game, source=r.source, times=r.times, gained=float(r.gained))
            for r in book.evidence(agent_id)
        ],
        achievements=[
            Achieved(game=r.game, name=r.name, first=r.first, times=r.times) for r in book.achievements(agent_id)
        ],
        items=[encode(r.item) for r in carried] if move is not None else [],
        goals=[PackedGoal(id=row.id, state=row.state, data=_uncounted(row)) for row in goals],
        diary=_diary(book, agent_id),
        mind=None if mind is None else base64.b64encode(mind).decode("ascii"),
        move=move,
        left=Left(bodies=len(bodies), items=sum(r.place == "world" for r in items)),
    )


def _diary(book: Book, agent_id: str) -> list[PackedEntry]:
    found: list[PackedEntry] = []
    after = 0
    while batch := book.events(after=after, agent=agent_id, kinds=(DiaryWritten,)):
        after = batch[-1].seq
        for event in batch:
            moment = datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds")
            if isinstance(event, DiaryWritten):
                written, text = event.written or moment, event.text
                found.append(PackedEntry(written=written, game=event.game, text=text, own_words=event.own_words))
    return found


def move_of(book: Book, agent_id: str) -> str | None:
    """Return the number of the move with which an agent left this nexus; None if it did not."""
    lore = book.connection.execute(select(_AGENT.c.lore).where(_AGENT.c.id == agent_id)).scalar()
    found = lore.get("moved") if isinstance(lore, dict) else None
    return found if isinstance(found, str) else None


def depart(book: Book, agent_id: str, move: str) -> None:
    """Write down that an agent has gone with its file; in the transaction in which it was packed.

    Raises:
        ExportError: it is in a world, or on its way.
    """
    agent = book.agent(agent_id)
    _check_home(book, agent_id)
    for record in book.items(agent_id, place="escrow"):
        book.move_item(
            agent_id, record.item.item_id, from_place="escrow", to_place="lost", to_id=_AWAY + move,
            note="it went with its agent to another nexus",
        )  # fmt: skip
    lore = {"core_memories": list(agent.core_memories), "strategies": list(agent.strategies), "moved": move}
    book.update_agent(agent_id, state="removed", lore=lore)
    book.note(AgentMovedAway(agent_id=agent_id, move=move))


def remove(book: Book, agent_id: str) -> None:
    """Take an agent out of the nexus for good; its id is not given to another, and its past stays.

    Raises:
        ExportError: it is in a world, or on its way.
    """
    check_not_removed(book, agent_id)
    _check_home(book, agent_id)
    book.update_agent(agent_id, state="removed")
    book.note(AgentRemoved(agent_id=agent_id))


def check_not_removed(book: Book, agent_id: str) -> None:
    """Refuse an agent that is gone.

    Raises:
        UnknownNameError: there is no such agent.
        UsageError: it was removed, or has moved to another nexus.
    """
    if book.agent(agent_id).state == "removed":
        how = "has moved to another nexus" if move_of(book, agent_id) is not None else "was removed"
        raise UsageError(f"The agent {agent_id!r} {how}.")


def _check_home(book: Book, agent_id: str) -> None:
    agent = book.agent(agent_id)
    if agent.place != "nexus":
        raise ExportError(
            f"{agent_id!r} is in a world; start the nexus and bring it back first: wsap nexus agents recall {agent_id}"
        )
    if any(row.agent_id == agent_id for row in book.transfers("prepared")):
        raise ExportError(f"{agent_id!r} is on its way; start the nexus, which settles that, and try again.")
    if any(row.agent_id == agent_id for row in book.transfers("unknown")):
        raise ExportError(
            f"A move of {agent_id!r} is in doubt, with what belongs to it; wait until the game answers, or decide: "
            f"wsap nexus agents settle {agent_id} --as returned"
        )


def write_package(path: Path, package: Package) -> None:
    """Write the file, readable by its owner alone, whole or not at all.

    Raises:
        StorageError: it can't be written.
    """
    body = dumps(package.model_dump()).encode()
    header = {_NAME: FORMAT, "agent": package.agent.id, "move": package.move is not None,
              "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}  # fmt: skip
    data = json.dumps(header).encode("ascii") + b"\n" + zstandard.compress(body, 9)
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(f"The file {path} can't be written: {error.strerror or error}.") from None


# --- in ---------------------------------------------------------------------------------------


def read_package(path: Path) -> Package:
    """Return what is in a file.

    Raises:
        WireError: it is no agent's file, damaged, or larger than any may be.
        ProtocolVersionError: a newer version of WSAP wrote it.
        StorageError: it can't be read.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(_HEADER)
            packed = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise StorageError(f"The file {path} can't be read: {error.strerror or error}.") from None
    header = _header(path, line)
    if len(packed) > LARGEST_FILE or header["size"] > LARGEST:
        raise WireError(f"The file {path} is larger than any agent's may be ({LARGEST_FILE >> 20} MiB).")
    body = _unpacked(path, packed, header["size"])
    if hashlib.sha256(body).hexdigest() != header["sha256"]:
        raise WireError(f"The file {path} is damaged: what is in it does not add up; take another copy.")
    try:
        return Package.model_validate(json.loads(body))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = one_line(".".join(str(part) for part in first["loc"]))[:80]
        raise WireError(f"The file {path} is not what an agent's file is: {where}: {first['msg']}.") from None
    except (ValueError, RecursionError):
        raise WireError(f"The file {path} is not what an agent's file is: it holds no JSON.") from None


def _header(path: Path, line: bytes) -> dict[str, Any]:
    # Any: JSON; what is used of it is checked here.
    try:
        header = json.loads(line)
        version, size, digest = header[_NAME], header["size"], header["sha256"]
        fine = all(type(n) is int and n >= 0 for n in (version, size)) and isinstance(digest, str)
    except (ValueError, KeyError, TypeError, RecursionError):
        fine = False
    if not fine:
        raise WireError(f"The file {path} is no agent's file; wsap nexus agents export makes one.")
    if version > FORMAT:
        raise ProtocolVersionError(
            f"The file {path} was written by a newer version of WSAP (its version is {version}, this one reads up to "
            f"{FORMAT}); update with: pip install --upgrade wsap-nexus"
        )
    return dict(header)


def _unpacked(path: Path, packed: bytes, size: int) -> bytes:
    try:
        # Read no further than what the header says: a small file can unpack to anything.
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed) as reader:
            body = reader.read(size + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise WireError(f"The file {path} is damaged ({one_line(error)[:80]}); take another copy.") from None
    if len(body) != size:
        raise WireError(f"The file {path} is damaged: it is not as long as it says; take another copy.")
    return body


def arrive(
    book: Book,
    package: Package,
    *,
    agent_id: str | None = None,
    policies: Mapping[str, Policy] | None = None,
    known: Collection[str] = (),
    trust: bool = False,
    paused: bool = False,
) -> Arrived:
    """Let an agent in, as one: all of it or nothing.

    Args:
        book: a transaction.
        package: what was in its file.
        agent_id: another id for it; its own when None.
        policies: who decides for it where the file says nothing, or nothing that is taken over.
        known: agents that may decide for it if the file says so and sets no options.
        trust: take over whatever the file says of who decided for it.
        paused: let it begin nothing yet.

    Raises:
        ImportRefusedError: the id is taken, or the move was let in before.
        ConservationError: an item that it brings is somewhere here.
        WireError: what is in the package makes no sense.
    """
    name = agent_id or package.agent.id
    home = _home_again(book, name, package)
    if package.move is not None and book.next_number(f"move:{package.move}") > 1:
        raise ImportRefusedError(
            f"{package.agent.id!r} was let in with this file before, so it can't bring its items again; "
            "export a copy where it is now."
        )
    packed = {game: Policy(p.agent, p.options) for game, p in sorted(package.policies.items())}
    taken = {game: p for game, p in packed.items() if trust or (p.agent in known and not p.options)}
    given = {**taken, **(policies or {})}
    if home:
        book.update_agent(name, state="active")
    agent, _ = book.register(name, name=package.agent.name, persona=package.agent.persona, policies=given)
    _fill(book, name, package, paused=paused, created=agent.created if agent_id else package.agent.created)
    if home:
        encoded = {game: {"agent": p.agent, "options": dict(p.options)} for game, p in given.items()}
        book.update_agent(name, name=package.agent.name, persona=package.agent.persona, policies=encoded)
    items = [_bring(book, name, package, raw) for raw in package.items]
    known_entries = {(e.written, e.text) for e in _diary(book, name)} if home else set()
    for entry in package.diary:
        if (entry.written, entry.text) in known_entries:
            continue
        own, written = entry.own_words, entry.written
        book.note(DiaryWritten(agent_id=name, game=entry.game, text=entry.text, own_words=own, written=written))
    book.note(AgentImported(agent_id=name, was=package.agent.id, move=package.move, items=len(items)))
    _bring_goals(book, name, package)
    return Arrived(name, len(items), tuple(f"{game}: {p.agent}" for game, p in packed.items() if game not in taken))


def _home_again(book: Book, name: str, package: Package) -> bool:
    """Return whether it is an agent that left this nexus and comes back.

    Raises:
        ImportRefusedError: another has the id.
    """
    state = book.connection.execute(select(_AGENT.c.state).where(_AGENT.c.id == name)).scalar()
    if state is None:
        return False
    if state == "removed" and move_of(book, name) is not None and package.move is not None:
        return True
    was = "was removed here, and ids are not given twice" if state == "removed" else "lives here already"
    raise ImportRefusedError(f"{name!r} {was}; let it in under another id with --as NAME.")


def _fill(book: Book, name: str, package: Package, *, paused: bool, created: str) -> None:
    own = package.agent
    for table in (_SKILL, _EVIDENCE, _ACHIEVEMENT, _GOAL):
        book.connection.execute(table.delete().where(table.c.agent_id == name))
    book.update_agent(
        name,
        created=created,
        state="paused" if paused else "active",
        lore={"core_memories": list(own.core_memories), "strategies": list(own.strategies)},
        lifetime_steps=own.lifetime_steps,
        playtime=own.playtime,
    )
    if package.mind is not None:
        try:
            book.keep_mind(name, base64.b64decode(package.mind, validate=True))
        except binascii.Error:
            raise WireError("What the agent remembers is damaged in the file; take another copy.") from None
    for domain, level in sorted(package.skills.items()):
        book.connection.execute(insert(_SKILL).values(agent_id=name, domain=domain, level=level))
        # Goals that ask for a level count what the log tells.
        book.note(SkillGained(agent_id=name, domain=domain, source="import", times=1, gain=0.0, level=level))
    for table, rows in ((_EVIDENCE, package.evidence), (_ACHIEVEMENT, package.achievements)):
        values = [{"agent_id": name, **row.model_dump()} for row in rows]
        if values:
            book.connection.execute(insert(table).prefix_with("OR REPLACE", dialect="sqlite"), values)


def _bring(book: Book, name: str, package: Package, raw: Mapping[str, Any]) -> str:
    """Take an item that an agent brings into escrow. Any: the item as JSON."""
    try:
        item = Codec().decode(PortableItem, dict(raw), where="item")
    except WsapError as error:
        raise WireError(f"An item in the file makes no sense: {error}") from None
    row = book.connection.execute(select(_ITEM).where(_ITEM.c.id == item.item_id)).one_or_none()
    if row is None:
        book.mint_item(name, item, game="nexus", session=f"move {package.move}")
        return item.item_id
    if row.place != "lost" or not str(row.place_id or "").startswith(_AWAY):
        raise ConservationError(
            f"The item {item.item_id!r} that the agent brings is here already, so it is not let in."
        )
    book.connection.execute(
        update(_ITEM)
        .where(_ITEM.c.id == item.item_id)
        .values(agent_id=name, place="escrow", place_id=None, note="it came back with its agent", data=encode(item))
    )
    book.note(ItemMoved(agent_id=name, item_id=item.item_id, to="escrow", to_id=None, why="it came back"))
    return item.item_id


def _bring_goals(book: Book, name: str, package: Package) -> None:
    from wsap_nexus.agents.metagoals import TEMPLATES, pursuits  # deferred for weight

    since = book.last_seq()
    for goal in package.goals:
        book.connection.execute(
            insert(_GOAL).values(agent_id=name, id=goal.id, state=goal.state, since=since, data=dict(goal.data))
        )
    try:
        for pursuit in pursuits(book, name):
            for requirement in pursuit.goal.requirements:
                requirement.check()
            pursuit.measures()
            if pursuit.goal.reward is not None and pursuit.goal != TEMPLATES.get(pursuit.goal.id):
                raise WireError(f"{pursuit.goal.id!r} promises a reward that only goals of the nexus have.")
    except (KeyError, TypeError, ValueError, AttributeError, WsapError) as error:
        raise WireError(f"A meta-goal in the file makes no sense: {one_line(error)[:200]}") from None


def _uncounted(row: Any) -> dict[str, Any]:
    """Return a goal without what was counted for it. Any: a row, and JSON."""
    data = dict(row.data)
    if row.state == "active":
        data = {**data, "tallies": [{} for _ in data.get("tallies", ())], "seq": 0}
    return data
