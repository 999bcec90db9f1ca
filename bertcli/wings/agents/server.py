"""The server of the Model Context Protocol, on standard input and output, made with the package mcp.

A call is computed in a thread, one at a time; a client that cancels it is answered at once, and its result is dropped.
"""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from bertcli._version import __version__
from bertcli.errors import BertcliError
from bertcli.wings.agents.tools import Tool

INSTRUCTIONS = (
    "Search files by meaning, label, redact and compare texts with local models. Nothing leaves this machine."
)


def serve(tools: Sequence[Tool]) -> None:
    """Answer the requests on standard input until it ends."""
    anyio.run(_run, tools)


async def _run(tools: Sequence[Tool]) -> None:
    server = _server({tool.name: tool for tool in tools})
    async with stdio_server() as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


def _server(tools: dict[str, Tool]) -> Server[Any]:
    """Make a server that lists and runs the tools."""
    one_at_a_time = anyio.CapacityLimiter(1)

    async def list_tools(context: Any, parameters: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(
            tools=[
                mcp_types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=tool.schema,
                    annotations=mcp_types.ToolAnnotations(read_only_hint=True),
                )
                for tool in tools.values()
            ]
        )

    async def call_tool(context: Any, parameters: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        tool = tools.get(parameters.name)
        if tool is None:
            return _failed(f"There is no tool {parameters.name!r}: choose from {', '.join(tools)}.")
        try:
            result = await anyio.to_thread.run_sync(
                tool.call, parameters.arguments or {}, abandon_on_cancel=True, limiter=one_at_a_time
            )
        except BertcliError as error:
            return _failed(str(error))
        except (OSError, MemoryError) as error:
            return _failed(f"{tool.name} could not be done: {error}")
        structured = result if isinstance(result, dict) else {"records": result}
        text = json.dumps(structured, ensure_ascii=False)
        return mcp_types.CallToolResult(
            content=[mcp_types.TextContent(type="text", text=text)], structured_content=structured
        )

    return Server(
        "bertcli", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _failed(message: str) -> mcp_types.CallToolResult:
    """An answer that says why a call could not be done."""
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=message)], is_error=True)
