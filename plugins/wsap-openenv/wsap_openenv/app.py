"""The application: the routes of OpenEnv's wire, and the web socket on which episodes are played."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, HTTPException, Request, WebSocket
from fastapi.responses import JSONResponse, Response

from wsap_core.protocol import ActionSpace
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options
from wsap_core.worlds import World
from wsap_nexus.http import errors
from wsap_openenv import tasks
from wsap_openenv.conversation import Conversation
from wsap_openenv.messages import (
    STATE,
    InvalidError,
    action_schema,
    observation_schema,
    splits,
)
from wsap_openenv.rpc import rpc_error, rpc_request, rpc_response
from wsap_openenv.sessions import FullError, Sessions

# Any, in this module: JSON.

WIRE = "1.0.0"
"""The version of OpenEnv's HTTP interface."""


class Served:
    """What a server says of its game; the game is made once, to be asked."""

    def __init__(self, sessions: Sessions) -> None:
        spec = self.spec = sessions.spec
        world = World.create(spec, Context.create(0, config=Options(dict(sessions.terms.options))))
        seat = world.open_seat(sessions.seat)
        self.space: ActionSpace = seat.action_space
        """The actions of the clients' seat."""
        self.description: str = seat.game_description.strip() or spec.summary
        """The game, its goals and mechanics."""
        if callable(close := getattr(world.adapter, "close", None)):
            close()


def app_of(sessions: Sessions) -> FastAPI:
    """Return the application that serves a game.

    Raises:
        WsapError: the game can't be made.
    """
    served = Served(sessions)
    app = FastAPI(title=served.spec.name, version=WIRE, docs_url=None, redoc_url=None)
    errors.install(app)
    _describe(app, sessions, served)
    _play(app, sessions, served)
    _list_tasks(app, served.spec.name)
    return app


def _describe(app: FastAPI, sessions: Sessions, served: Served) -> None:
    """Add the routes that tell of the server and its game."""
    game = served.spec.name

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Return that the server works."""
        return {"status": "healthy"}

    @app.get("/metadata")
    async def metadata() -> dict[str, Any]:
        """Return the name and description of the game."""
        return {"name": game, "description": served.description, "version": version("wsap-openenv"), "author": "WSAP"}

    @app.get("/schema")
    async def schema() -> dict[str, Any]:
        """Return the JSON Schemas of actions, observations and the state."""
        observation = observation_schema(structured=sessions.terms.structured)
        return {
            "action": action_schema(served.space),
            "observation": observation,
            "reset_observation": observation,
            "state": dict(STATE),
        }

    @app.get("/state")
    async def state() -> dict[str, Any]:
        """Return the state of no episode: episodes are played on the web socket."""
        return {"episode_id": None, "step_count": 0, "game": game}


def _play(app: FastAPI, sessions: Sessions, served: Served) -> None:
    """Add the routes on which episodes are played, and those on which they can't be."""

    @app.post("/reset")
    async def reset(request: Request) -> dict[str, Any]:
        """Return what is seen first in an episode that is not kept: a probe of whether the game works."""
        return await Conversation(sessions, served).probe(await _object(request))

    @app.post("/step")
    async def step(request: Request) -> Response:
        """Refuse: without a connection there is no episode."""
        told = "There is no episode without a connection: reset and step on the web socket /ws."
        return errors.error_response(409, "NO_EPISODE", told)

    @app.post("/mcp")
    async def mcp(request: Request) -> JSONResponse:
        """Answer a JSON-RPC request: the tools are listed; they are called on the web socket."""
        try:
            asked = rpc_request(await request.json())
        except ValueError as error:
            return JSONResponse(rpc_error(None, error))
        return JSONResponse(await rpc_response(asked, served.space, None))

    @app.websocket("/ws")
    async def play(socket: WebSocket) -> None:
        """Play one episode after the other with a client."""
        await socket.accept()
        try:
            session = sessions.open()
        except FullError as error:
            counts = {"active_sessions": len(sessions), "max_sessions": sessions.most}
            await socket.send_json({"type": "error", "data": {"message": str(error), "code": error.code, **counts}})
            await socket.close()
            return
        await Conversation(sessions, served).held(socket, session)


def _list_tasks(app: FastAPI, game: str) -> None:
    """Add the routes of tasks; the name of a game may have slashes."""

    def check(name: str) -> None:
        if name != game:
            raise HTTPException(404, f"This server serves {game!r}.")

    @app.get("/list_environments")
    async def environments() -> list[str]:
        """Return the name of the game."""
        return [game]

    @app.get("/{name:path}/splits")
    async def list_splits(name: str) -> list[dict[str, str]]:
        """Return the splits of the tasks."""
        check(name)
        return splits()

    @app.post("/{name:path}/tasks")
    async def list_tasks(name: str, request: Request) -> dict[str, Any]:
        """Return all tasks of a split, if they are few."""
        check(name)
        found = tasks.tasks_between(_split(await _object(request)), None, None)
        return {"tasks": [task.to_json(game) for task in found], "env_name": game}

    @app.post("/{name:path}/num_tasks")
    async def num_tasks(name: str, request: Request) -> dict[str, int]:
        """Return the number of tasks of a split."""
        check(name)
        return {"num_tasks": len(tasks.seeds_of(_split(await _object(request))))}

    @app.post("/{name:path}/task")
    async def task(name: str, request: Request) -> dict[str, Any]:
        """Return a task of a split."""
        check(name)
        asked = await _object(request)
        return {"task": tasks.Task(_split(asked), _whole(asked, "index", 0)).to_json(game)}

    @app.post("/{name:path}/task_range")
    async def task_range(name: str, request: Request) -> dict[str, Any]:
        """Return several tasks of a split."""
        check(name)
        asked = await _object(request)
        first, end = (_whole(asked, key, None) for key in ("start", "stop"))
        return {"tasks": [one.to_json(game) for one in tasks.tasks_between(_split(asked), first, end)]}


async def _object(request: Request) -> dict[str, Any]:
    body = await request.body()
    data = await request.json() if body else {}  # the guard has checked it
    if not isinstance(data, dict):
        raise InvalidError("The body must be a JSON object.")
    return data


def _split(asked: dict[str, Any]) -> str:
    if not isinstance(split := asked.get("split"), str):
        raise InvalidError("Name a split, such as train.")
    return split


def _whole(asked: dict[str, Any], name: str, default: int | None) -> Any:
    value = asked.get(name, default)
    if value is not None and type(value) is not int:
        raise InvalidError(f"{name} must be a whole number.")
    return value
