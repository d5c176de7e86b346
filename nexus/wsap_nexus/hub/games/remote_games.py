"""Games in other processes: their registration, their worlds, and the reconciliation of interrupted entries.

An entry into a remote game that was not committed when the nexus stopped is *unresolved*: the game may have admitted
the items. The nexus asks the game to withdraw the transfer by its id; from then on the game admits nothing under that
id, and it answers with what comes back. Only then do the items return to escrow. Until the game answers, the transfer
is `unknown` and owns its items, so that none is ever in two places.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args
from urllib.parse import urlsplit

from wsap_core.errors import ProtocolVersionError, StorageError, UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol import TransitPackage
from wsap_core.protocol.wire import Codec, dumps, encode
from wsap_core.spec_json import spec_of_json, spec_to_json
from wsap_core.specs import Ability, AdapterSpec, problems_of
from wsap_core.untrusted import single_line
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.transit.entering import cancel_entry
from wsap_nexus.store.entities import USUAL_TERMS, GameRecord, TransferRecord, WorldRecord
from wsap_nexus.store.events.nexus import GameJoined
from wsap_nexus.store.events.sessions import TransferCancelled, TransferUnresolved
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.tasks import ended
from wsap_nexus.worlds.placement import FailureListener
from wsap_nexus.worlds.remote.game_client import GameClient, GameLostError
from wsap_nexus.worlds.remote.http_lines import HttpLines
from wsap_nexus.worlds.remote.remote_world import RemoteWorld

# Any, in this module: JSON.

_KEPT = "elsewhere"
"""The key of a remote game's address in its row."""
ASK_AGAIN = 15.0
"""Seconds between two attempts to reconcile a transfer."""
_ABILITIES = frozenset(get_args(Ability)) - {"lives", "influence", "irreversible"}
"""The abilities that a world has in another process, too."""
_ANY_AGENT = "random"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_CUT = {"title": 80, "summary": 500, "genre": 80, "dimensions": 80, "language": 20}
"""Texts of a game's description that are cut to so many characters."""
_LONGEST = 4000
"""The most characters of any other text in it."""
_LARGEST = 2**20
"""The most bytes of a game's description."""
_SEATS = 1000
_CODEC = Codec()
_SEMVER = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")


class GameAddressError(UsageError):
    """The address of a game is invalid or not allowed."""

    code = "GAME_ADDRESS"


def check_address(url: str, allowed: tuple[str, ...]) -> None:
    """Raise GameAddressError unless an address is valid and its host is this machine or one of the `allowed`."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise GameAddressError("Invalid game address; expected for example http://127.0.0.1:7801") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password or parts.query:
        raise GameAddressError("Invalid game address; expected for example http://127.0.0.1:7801")
    if host in allowed or host == "localhost":
        return
    try:
        near = ipaddress.ip_address(host).is_loopback
    except ValueError:
        near = False
    if not near:
        raise GameAddressError(
            f"The host {host!r} is not allowed; games must run on this machine or on an allowed host."
        )


@dataclass(eq=False)
class RemoteGames:
    """The games of a nexus that run in other processes.

    Args:
        host: the installed games and agents.
        allowed: allowed hosts besides this machine.
        on_failure: called once for each exit of a game's process.
    """

    nexus_store: NexusStore
    host: PluginHost
    allowed: tuple[str, ...]
    on_failure: FailureListener

    def __post_init__(self) -> None:
        self._specs: dict[str, AdapterSpec] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    def specs(self) -> Mapping[str, AdapterSpec]:
        """Return the specs of the games by name."""
        if self._specs is None:
            with self.nexus_store.look() as tx:
                games = tx.games()
            self._specs = dict(_kept_specs(games, self.host))
        return self._specs

    def world(self, spec: AdapterSpec, record: WorldRecord) -> RemoteWorld:
        """Return a new, unstarted world."""
        assert isinstance(spec.factory, GameClient)  # `specs` makes no others
        told = partial(self.on_failure, spec.name, record.id)
        lines = HttpLines(spec, record.id, spec.factory, told)
        return RemoteWorld(spec, record.seed, record.options, pool=lines, on_failure=told)

    async def join(self, url: str, token: str | None, taken: frozenset[str]) -> AdapterSpec:
        """Register a game: request its spec, store its address, and return the spec.

        Args:
            url: the address of the game's bridge.
            token: the token that the bridge requires.
            taken: the names of games installed here.

        Raises:
            GameAddressError: the address is invalid or not allowed.
            UsageError: an installed game has its name.
            WorldFailedError: it does not answer, or its answer is invalid.
            ProtocolVersionError: it speaks another major version.
        """
        check_address(url, self.allowed)
        client = GameClient(url, token)
        try:
            told = await client.ask("GET", "/")
            spec = read_spec(told, client, self.host)
            if spec.name in taken:
                raise UsageError(f"A game called {spec.name!r} is installed here; rename the remote one.")
        except BaseException:
            await client.close()
            raise
        known = self.specs().get(spec.name)
        data = {"url": client.url, "token": token, "told": told}
        with self.nexus_store.change() as tx:
            tx.keep_game(spec.name, {_KEPT: data}, status="available", reason="")
            tx.note(GameJoined(game=spec.name, url=client.url, before=_url(known)))
        if known is not None and isinstance(known.factory, GameClient):
            await known.factory.close()
        self._specs = {**self.specs(), spec.name: spec}
        self._wake.set()
        return spec

    # --- unresolved transfers ---------------------------------------------------------------------

    def doubt(self, tx: Transaction, transfer_id: str, agent_id: str, game: str, why: str) -> bool:
        """Mark a prepared entry into a remote game as unresolved; return False if the game is not remote."""
        if game not in self.specs():
            return False
        tx.settle(transfer_id, "unknown", why=why)
        tx.note(TransferUnresolved(agent_id=agent_id, game=game, transfer=transfer_id, why=why))
        self._wake.set()
        return True

    def start(self) -> None:
        """Start reconciling unresolved transfers in the background."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_on(), name="unresolved transfers")

    async def stop(self) -> None:
        """Stop reconciling, and close all connections."""
        asking, self._asking = self._asking, None
        await ended(asking)
        for spec in self.specs().values():
            if isinstance(spec.factory, GameClient):
                await spec.factory.close()

    async def settle(self) -> int:
        """Ask once about each unresolved transfer, settle those answered, and return how many are left."""
        with self.nexus_store.look() as tx:
            rows = [row for row in tx.transfers("unknown") if row.kind == "enter"]
        by_game: dict[str, list[TransferRecord]] = {}
        for row in rows:
            by_game.setdefault(str(row.data.get("game")), []).append(row)
        # Side by side, so that a game that does not answer holds up no other.
        return sum(await asyncio.gather(*(self._settle_with(game, each) for game, each in by_game.items())))

    async def _settle_with(self, game: str, rows: Sequence[TransferRecord]) -> int:
        """Ask one game about its unresolved transfers, and return how many are left."""
        spec = self.specs().get(game)
        if spec is None or not isinstance(spec.factory, GameClient):
            return len(rows)
        left = 0
        for number, row in enumerate(rows):
            path = f"/transfers/{row.id}"
            spec.factory.begin_work(path)
            try:
                told = await spec.factory.ask("POST", f"{path}/withdraw", {})
                self._withdrawn(row, told)
            except WsapError as error:
                left += 1
                with contextlib.suppress(StorageError):
                    self._still_unknown(row, error)
                if isinstance(error, GameLostError) and not error.answered:
                    return left + len(rows) - number - 1  # it would not answer about the others either
                continue
            finally:
                spec.factory.end_work(path)
            await self._clear_away(spec.factory, row.world_id)
        return left

    async def _clear_away(self, client: GameClient, world_id: str | None) -> None:
        """Ask the game to delete a world that no agent arrived in; its id is never reused."""
        if world_id is None:
            return
        with self.nexus_store.look() as tx:
            if tx.has_world(world_id):
                return
        with contextlib.suppress(WsapError):  # then it stays until the game ends
            await client.ask("DELETE", f"/worlds/{world_id}")

    async def _ask_on(self) -> None:
        while True:
            self._wake.clear()
            if await self.settle():
                try:
                    async with asyncio.timeout(ASK_AGAIN):
                        await self._wake.wait()
                except TimeoutError:
                    continue
            else:
                await self._wake.wait()

    def _withdrawn(self, row: TransferRecord, told: Mapping[str, Any]) -> None:
        """Settle a transfer that the game has withdrawn: its items return, or were lost in the game."""
        if not isinstance(told.get("known"), bool):
            raise WorldFailedError("The game did not say whether it knew the transfer.")
        package = told.get("package")
        if not told["known"] or package is None:
            with self.nexus_store.change() as tx:
                if tx.transfer_state(row.id) == "unknown":
                    cancel_entry(tx, row.id, row.agent_id, "the game had admitted nothing")
            return
        back = _CODEC.decode(TransitPackage, package, where="withdrawn transfer")
        returned = {item.item_id for item in back.items}
        with self.nexus_store.change() as tx:
            if tx.transfer_state(row.id) != "unknown":
                return  # a person has decided meanwhile
            for record in tx.items(row.agent_id, place="transfer", place_id=row.id):
                item = record.item.item_id
                why = back.lost.get(item)
                gone = why is not None and item not in returned
                tx.move_items(
                    row.agent_id, [item], from_place="transfer", from_id=row.id,
                    to_place="lost" if gone else "escrow", note=why or "the transfer was withdrawn",
                )  # fmt: skip
            tx.settle(row.id, "cancelled", withdrawn=encode(back))
            tx.note(TransferCancelled(agent_id=row.agent_id, transfer=row.id, why="withdrawn by the game"))

    def _still_unknown(self, row: TransferRecord, error: WsapError) -> None:
        why = str(error)[:500]
        if row.data.get("why") != why:
            with self.nexus_store.change() as tx:
                tx.say_why_unknown(row.id, why)


def read_spec(told: Mapping[str, Any], client: GameClient, host: PluginHost | None = None) -> AdapterSpec:
    """Return a game's spec from its bridge's answer; WorldFailedError or ProtocolVersionError if it is not usable.

    Of the code, agents and commands that it names, only those remain that a game installed in `host` names as well.
    """
    game = told.get("game")
    if not isinstance(game, dict):
        raise WorldFailedError(f"The service at {client.url} does not describe a game.")
    version = str(game.get("protocol_version") or told.get("protocol_version") or "")
    _check_version(version, client)
    client.echoes = told.get("echoes") is True
    try:
        return _spec(game, version, client, host)
    except (TypeError, ValueError, RecursionError, WsapError) as error:
        raise WorldFailedError(f"The description of the game at {client.url} is invalid: {error}") from error


def _check_version(version: str, client: GameClient) -> None:
    match = _SEMVER.fullmatch(version)
    if match is None:
        raise ProtocolVersionError(
            f"The game at {client.url} reports protocol version {version!r}, which is not of the form 1.2.3."
        )
    if match[1] != PROTOCOL_VERSION.split(".")[0]:
        raise ProtocolVersionError(
            f"The game at {client.url} speaks protocol {version}, and this nexus speaks {PROTOCOL_VERSION}; "
            "update the older of the two."
        )


def _spec(game: Mapping[str, Any], version: str, client: GameClient, host: PluginHost | None) -> AdapterSpec:
    name = game.get("name")
    if not isinstance(name, str) or len(name) > 80 or not _NAME.fullmatch(name):
        raise ValueError(f"{single_line(repr(name))[:80]} can't be a game's name")
    _check_size(game)
    cut = {key: game[key][:most] for key, most in _CUT.items() if isinstance(game.get(key), str)}
    told = {"summary": name[: _CUT["summary"]], "max_avatars": 1, **game, **cut, "protocol_version": version}
    spec = spec_of_json(told, client, _Trusted(host))
    if wrong := problems_of(spec):
        raise ValueError(" ".join(wrong))
    if spec.seats[1] > _SEATS:
        raise ValueError(f"it has {spec.seats[1]} seats; at most {_SEATS} are allowed")
    agents = host.agents if host is not None else None
    plays = agents is not None and agents.has(spec.default_agent) and agents.get(spec.default_agent).plays(name)
    return replace(
        spec,
        abilities=tuple(a for a in spec.abilities if a in _ABILITIES),
        terms={term: values for term, values in spec.terms.items() if term in USUAL_TERMS},
        default_agent=spec.default_agent if plays else _ANY_AGENT,
    )


class _Trusted:
    """Tells which code, agents and commands of a remote game may be used here: those that installed games name."""

    def __init__(self, host: PluginHost | None) -> None:
        self._host = host
        self._known: set[str] | None = None

    def __call__(self, text: str) -> bool:
        if self._known is None:  # not before it is needed: this reads the specs of all games
            self._known = set()
            for entry in () if self._host is None else self._host.games.all():
                spec_of_json(spec_to_json(entry.spec), "", self._note)  # reading a spec asks about all that it names
        return text in self._known

    def _note(self, text: str) -> bool:
        assert self._known is not None  # set by the caller
        self._known.add(text)
        return False


def _check_size(game: Mapping[str, Any]) -> None:
    size = len(dumps(game))
    if size > _LARGEST:
        raise ValueError(f"it has {size} bytes; at most {_LARGEST} are allowed")
    waiting: list[tuple[str, Any]] = [(key, value) for key, value in game.items() if key not in _CUT]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, str) and len(value) > _LONGEST:
            raise ValueError(f"a text of {key} has {len(value)} characters; at most {_LONGEST} are allowed")
        if isinstance(value, Mapping):
            waiting += [(key, each) for pair in value.items() for each in pair]
        elif isinstance(value, list):
            waiting += [(key, each) for each in value]


def _kept_specs(games: Sequence[GameRecord], host: PluginHost) -> Iterator[tuple[str, AdapterSpec]]:
    for game in games:
        kept = game.data.get(_KEPT)
        if isinstance(kept, dict):
            try:
                yield game.name, read_spec(kept["told"], GameClient(kept["url"], kept.get("token")), host)
            except WsapError:
                continue  # stored by another version; the game has to register again


def _url(spec: AdapterSpec | None) -> str | None:
    return spec.factory.url if spec is not None and isinstance(spec.factory, GameClient) else None
