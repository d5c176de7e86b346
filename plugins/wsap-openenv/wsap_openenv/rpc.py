"""Each action as a tool, for clients that list and call tools: by JSON-RPC, and by OpenEnv's steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import WsapError
from wsap_core.protocol import Action, ActionSpace
from wsap_openenv.messages import tool_schema

# Any, in this module: JSON.

LIST, CALL = "list_tools", "call_tool"
"""The types of tool actions in steps."""
INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, FAILED = -32600, -32601, -32602, -32603

Take = Callable[[Action], Awaitable[Mapping[str, Any]]]
"""Takes an action; returns what a client is told, with `observation`, `reward` and `done`."""


@dataclass(frozen=True)
class RpcRequest:
    """A JSON-RPC request."""

    id: Any
    method: str
    params: Mapping[str, Any]


def tools_of(space: ActionSpace, key: str = "inputSchema") -> list[dict[str, Any]]:
    """Return the listed actions as tools, with the JSON Schema of their parameters under a key."""
    return [
        {"name": each.name, "description": each.description or each.name, key: tool_schema(each)}
        for each in space.listed().actions
    ]


def result_text(seen: Mapping[str, Any]) -> str:
    """Return what came of a call, and what is seen, for a model."""
    return f"{seen['message']}\n\n{seen['text']}".strip()


def called(name: object, arguments: object) -> Action:
    """Return the action that a tool call takes; ValueError if the call has not the form of one."""
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ValueError("A call has the name of a tool, and arguments that are an object.")
    return Action(name, arguments)


def rpc_request(data: object) -> RpcRequest:
    """Return the request in JSON data; ValueError if there is none."""
    if not isinstance(data, dict) or data.get("jsonrpc") != "2.0" or not isinstance(data.get("method"), str):
        raise ValueError('A request has "jsonrpc": "2.0", a method and an id.')
    params = data.get("params", {})
    if not isinstance(params, dict):
        raise ValueError("The params must be an object.")
    return RpcRequest(data.get("id"), data["method"], params)


def rpc_error(request_id: Any, error: Exception, code: int = INVALID_REQUEST) -> dict[str, Any]:
    """Return the response with an error."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": str(error)}}


async def rpc_response(asked: RpcRequest, space: ActionSpace, take: Take | None) -> dict[str, Any]:
    """Return the response to a request; without `take` there is no episode in which a tool could be called."""
    if asked.method == "tools/list":
        return {"jsonrpc": "2.0", "id": asked.id, "result": {"tools": tools_of(space)}}
    if asked.method != "tools/call":
        return rpc_error(asked.id, ValueError("There are the methods tools/list and tools/call."), NO_METHOD)
    if take is None:
        return rpc_error(asked.id, ValueError("Tools are called on the web socket /ws, after a reset."))
    try:
        told = await take(called(asked.params.get("name"), asked.params.get("arguments", {})))
    except ValueError as error:
        return rpc_error(asked.id, error, INVALID_PARAMS)
    except WsapError as error:
        return rpc_error(asked.id, error, FAILED)
    seen = told["observation"]
    result = {
        "content": [{"type": "text", "text": result_text(seen)}],
        "structuredContent": {"reward": told["reward"], "done": told["done"], "metadata": told["metadata"]},
        "isError": not seen["success"],
    }
    return {"jsonrpc": "2.0", "id": asked.id, "result": result}
