"""The tools of an MCP server, and the results of calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from wsap_core.errors import WsapError
from wsap_core.protocol.values import validate_value
from wsap_core.untrusted import strip_control

# Any, in this module: JSON.

Arguments = Mapping[str, Any]
NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True)
class Told:
    """What a tool answers: a text for the model, and structured content."""

    text: str
    content: Mapping[str, Any] | None = None
    failed: bool = False
    """Whether it is a refusal, which the model reads and may mend."""


@dataclass(frozen=True)
class Offered:
    """A tool with its implementation."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """The JSON Schema of the arguments."""
    call: Callable[[Arguments], Awaitable[Told]]
    reads: bool = False
    """Whether it changes nothing."""

    def tool(self) -> Tool:
        """Return the tool as clients see it."""
        hints = ToolAnnotations(read_only_hint=self.reads, open_world_hint=False)
        return Tool(name=self.name, description=self.description, input_schema=dict(self.schema), annotations=hints)


@dataclass(frozen=True)
class Readable:
    """A resource, or with `{}` in its address a family of them."""

    address: str
    """Such as `wsap://runs/{run}`."""
    name: str
    description: str
    read: Callable[[str], Awaitable[str]]
    """Returns the text; gets what stands in place of the braces."""
    kind: str = field(default="text/plain")
    """The media type."""


def schema_of(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def server_of(name: str, instructions: str, offered: list[Offered], readable: list[Readable]) -> Server[dict[str, Any]]:
    """Return an MCP server with these tools and resources, the same for every client and at any time.

    What a tool refuses or what fails in a game is a result with `is_error`, so that a model can read it; only unknown
    tools, handles and resources, and arguments that do not fit, are errors of the protocol.
    """
    by_name = {each.name: each for each in offered}

    async def list_tools(ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[each.tool() for each in offered])

    async def call_tool(ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name[:60]!r}; there are: {', '.join(by_name)}.")
        given = params.arguments or {}
        if wrong := validate_value(given, tool.schema, ""):
            return _result(Told(f"The arguments of {tool.name} do not fit: {wrong}", failed=True))
        try:
            return _result(await tool.call(given))
        except WsapError as error:
            return _result(Told(str(error), {"code": error.code}, failed=True))

    async def list_resources(
        ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        whole = [each for each in readable if "{" not in each.address]
        return ListResourcesResult(
            resources=[
                Resource(uri=each.address, name=each.name, description=each.description, mime_type=each.kind)
                for each in whole
            ]
        )

    async def list_templates(
        ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        families = [each for each in readable if "{" in each.address]
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    uri_template=each.address, name=each.name, description=each.description, mime_type=each.kind
                )
                for each in families
            ]
        )

    async def read_resource(ctx: ServerRequestContext[Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        address = str(params.uri)
        for each in readable:
            start, brace, _ = each.address.partition("{")
            if address == each.address or (brace and address.startswith(start) and len(address) > len(start)):
                try:
                    text = await each.read(address.removeprefix(start))
                except WsapError as error:
                    raise MCPError(INVALID_PARAMS, str(error)) from error
                return ReadResourceResult(
                    contents=[TextResourceContents(uri=address, mime_type=each.kind, text=strip_control(text))]
                )
        raise MCPError(INVALID_PARAMS, f"There is no resource {address[:200]!r}.")

    return Server(
        name,
        version=version("wsap-mcp"),
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _result(told: Told) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=strip_control(told.text))],
        structured_content=None if told.content is None else dict(told.content),
        is_error=told.failed,
    )
