"""A world's operations are spelled once, in one table, and mean the same wherever the world is."""

from __future__ import annotations

import ast
import asyncio
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import hub_kit
import pytest
from fastapi.routing import APIRoute
from test_far_blame import Town

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, AvatarSpec, Entry, PortableItem
from wsap_core.protocol.wire import dumps, encode
from wsap_core.spec_json import spec_to_json
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.games.remote_games import read_spec
from wsap_nexus.worlds import operations as ops
from wsap_nexus.worlds import port
from wsap_nexus.worlds.living_world import LivingWorld
from wsap_nexus.worlds.operations import OPERATIONS, Operation
from wsap_nexus.worlds.port import LivingPort, LocalWorld, WorldPort
from wsap_nexus.worlds.remote.bridge_routes import router
from wsap_nexus.worlds.remote.http_lines import HttpLines
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.seats import default_action
from wsap_nexus.worlds.workers.frames import read_request, request

# Any, in this module: JSON.

ENTRY = Entry("transfer-1", "eve", {"crafting": 0.5}, (PortableItem("rope-1", "rope", "tool", 1, origin="crafter"),))
EXAMPLES: tuple[tuple[Operation[Any], dict[str, Any]], ...] = (
    (
        ops.Create(spec_to_json(hub_kit.QUARRY), "hub_kit:QUARRY", 5, {"size": 3}),
        {"spec": spec_to_json(hub_kit.QUARRY), "factory": "hub_kit:QUARRY", "seed": 5, "options": {"size": 3},
         "lives": False},
    ),
    (ops.Begin(7), {"seed": 7}),
    (ops.Close(), {}),
    (ops.OpenSeat("eve"), {"seat": "eve"}),
    (ops.Avatars("eve"), {"agent": "eve"}),
    (ops.CreateAvatar("eve", AvatarSpec("Eve")), {"agent": "eve", "wanted": AvatarSpec("Eve")}),
    (ops.Admit("eve-1", ENTRY), {"avatar": "eve-1", "entry": ENTRY}),
    (ops.Release("eve-1", "transfer-2"), {"avatar": "eve-1", "transfer_id": "transfer-2"}),
    (ops.Death("eve-1"), {"avatar": "eve-1"}),
    (ops.Respawn("eve", "eve-1", "camp"), {"agent": "eve", "avatar": "eve-1", "option": "camp"}),
    (ops.Snapshot(), {}),
    (ops.Restore(b"\x00state"), {"state": "AHN0YXRl"}),
    (ops.Render(), {}),
    (ops.Observe("eve"), {"seat": "eve"}),
    (ops.Look("eve"), {"seat": "eve"}),
    (ops.Resolve("eve", Action("dig", {"depth": 2})), {"seat": "eve", "action": Action("dig", {"depth": 2})}),
    (ops.Leave("eve"), {"seat": "eve", "mode": "dormant"}),
    (ops.DefaultAction("eve"), {"seat": "eve"}),
    (ops.Advance(), {}),
    (ops.Reached(), {}),
    (ops.Rest(), {}),
    (ops.Settle(), {}),
    (ops.Influence({"rain": True}), {"body": {"rain": True}}),
    (ops.CloseSeat("eve"), {"seat": "eve"}),
    (ops.Vacated(), {}),
    (ops.LetGo("eve"), {"seat": "eve"}),
)  # fmt: skip
"""Each operation, and what it sends besides its name."""


@pytest.mark.parametrize(("operation", "sent"), EXAMPLES, ids=[operation.name for operation, _ in EXAMPLES])
def test_an_operation_arrives_in_a_worker_as_it_was_sent(operation: Operation[Any], sent: dict[str, Any]) -> None:
    content = request(operation, 3)
    assert content.decode() == dumps({"op": operation.name, "world": 3, **sent})
    assert read_request(json.loads(content)) == operation


def test_the_table_has_every_operation() -> None:
    defined = {kind for kind in vars(ops).values() if isinstance(kind, type) and issubclass(kind, Operation)}
    assert {kind for kind in defined if hasattr(kind, "name")} == set(OPERATIONS.values())
    assert {type(operation) for operation, _ in EXAMPLES} == set(OPERATIONS.values())


def test_what_is_not_base64_is_no_state() -> None:
    with pytest.raises(UsageError, match="The state is not base64"):
        ops.Restore.of({"state": "never"})


# --- over HTTP ------------------------------------------------------------------------------------

WORLD = "/worlds/{world_id}"
ROUTES = {
    "begin": ("PUT", "", {"world_seed", "seed", "options"}),
    "close": ("DELETE", "", None),
    "open_seat": ("POST", "/seats/{seat}/jack-in", None),
    "observe": ("GET", "/seats/{seat}/observation", None),
    "look": ("GET", "/seats/{seat}/view", None),
    "resolve": ("POST", "/seats/{seat}/act", {"action"}),
    "leave": ("POST", "/seats/{seat}/jack-out", {"mode"}),
    "avatars": ("GET", "/seats/{agent}/avatars", None),
    "create_avatar": ("POST", "/seats/{agent}/avatars", {"wanted"}),
    "admit": ("POST", "/avatars/{avatar}/admit", {"entry"}),
    "release": ("POST", "/avatars/{avatar}/release", {"transfer_id"}),
    "death": ("GET", "/avatars/{avatar}/death", None),
    "respawn": ("POST", "/avatars/{avatar}/respawn", {"agent", "option"}),
    "snapshot": ("GET", "/snapshot", None),
    "restore": ("POST", "/restore", {"state"}),
    "render": ("GET", "/view", None),
}
"""What games in other languages serve: operation -> method, path and the fields of the body."""


def test_the_routes_are_those_that_games_in_other_languages_serve() -> None:
    served = {}
    for route in router.routes:
        assert isinstance(route, APIRoute)
        for method in route.methods:
            body = route.body_field
            shape = None if body is None else set(body.field_info.annotation.model_fields)  # type: ignore[union-attr]
            served[method, route.path] = shape
    own = {kind.route and (kind.route.method, WORLD + kind.route.path) for kind in OPERATIONS.values()} - {None}
    assert own == {(method, WORLD + path) for method, path, _ in ROUTES.values()}
    for name, (method, path, body) in ROUTES.items():
        kind = OPERATIONS[name]
        assert kind.route is not None
        assert (kind.route.method, kind.route.path) == (method, path)
        assert served[method, WORLD + path] == body


def test_a_name_with_a_slash_is_one_part_of_a_path() -> None:
    assert ops.Resolve("eve/1", Action("dig")).http_path() == "/seats/eve%2F1/act"
    assert ops.Resolve("eve/1", Action("dig")).http_body() == {"action": encode(Action("dig"))}
    assert ops.Observe("eve").http_body() is None


class Brief(Town):
    """A game elsewhere that tells of a seat only what the wire API says."""

    async def _send(self, method: str, path: str, body: Any, key: str) -> tuple[int, Any]:
        status, said = await super()._send(method, path, body, key)
        if path.endswith("/jack-in"):
            del said["default_action"]
        return status, said


def test_a_game_elsewhere_that_tells_no_default_action_has_none() -> None:
    async def test() -> None:
        town = Brief()
        spec = read_spec(await town.ask("GET", "/"), town)
        world = RemoteWorld(spec, 5, {}, pool=HttpLines(spec, "w-1", town, lambda error: None))
        await world.begin(7)
        assert await default_action(await world.open_seat("eve")) is None
        await world.close()

    asyncio.run(test())


@pytest.mark.parametrize("said", [7, None, ["done"]])
def test_a_state_of_a_seat_that_is_none_is_the_games_failure(said: Any) -> None:
    class Odd(Town):
        async def _send(self, method: str, path: str, body: Any, key: str) -> tuple[int, Any]:
            status, reply = await super()._send(method, path, body, key)
            if path.endswith("/restore"):
                reply["seats"]["eve"] = said
            return status, reply

    async def test() -> None:
        town = Odd()
        spec = read_spec(await town.ask("GET", "/"), town)
        world = RemoteWorld(spec, 5, {}, pool=HttpLines(spec, "w-1", town, lambda error: None))
        await world.begin(7)
        await world.open_seat("eve")
        with pytest.raises(WorldFailedError, match="invalid state of a seat"):
            await world.restore(await world.snapshot())
        await world.close()

    asyncio.run(test())


# --- one place ------------------------------------------------------------------------------------

FOLDER = Path(port.__file__).parent
ABILITIES = {"snapshot", "influence", "render"}
"""Names of operations that are names of abilities, too."""


def test_operations_are_named_in_one_module() -> None:
    named = {}
    for path in FOLDER.rglob("*.py"):
        if path.name != "operations.py":
            found = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
            named[path.name] = sorted(found & (set(OPERATIONS) - ABILITIES))
    assert {name: found for name, found in named.items() if found} == {}


@pytest.mark.parametrize("kind", [LocalWorld, RemoteWorld, LivingWorld], ids=lambda kind: kind.__name__)
def test_no_world_has_a_way_of_its_own_for_an_operation(kind: type[WorldPort]) -> None:
    assert not set(vars(kind)) & set(OPERATIONS)


def test_what_a_port_offers_are_operations_with_their_own_parameters() -> None:
    called: list[Operation[Any]] = []

    class Noting(LivingPort):
        async def call(self, operation: Operation[Any], told: Any = None) -> Any:
            called.append(operation)

    offered = [name for name in (*vars(WorldPort), *vars(LivingPort)) if name in OPERATIONS and name != "advance"]
    examples = {operation.name: operation for operation, _ in EXAMPLES}
    for name in offered:
        values = {known.name: getattr(examples[name], known.name) for known in fields(examples[name])}
        asyncio.run(getattr(Noting(), name)(**values))
    assert called == [examples[name] for name in offered]
    assert len(offered) == 17
