"""The server of the Model Context Protocol, on standard input and output, made with the package mcp.

A call is computed in a thread, one at a time. A client that cancels it, or leaves, stops it: what is computed looks
whether it is still wanted between two micro-batches. A line that is no message is answered with an error.
"""

import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any, BinaryIO

import anyio
import anyio.from_thread
import mcp_types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from bertcli._version import __version__
from bertcli.engine.pauses import pausing
from bertcli.errors import BertcliError, quoted
from bertcli.wings.agents.tools import Arguments, Tool

INSTRUCTIONS = (
    "Search files by meaning, label, redact and compare texts with local models. Nothing leaves this machine."
)
LONGEST_LINE = 16_000_000  # bytes of a message
SECONDS_TO_END = 3.0
TOO_LONG = "…"  # which is no message either
NO_JSON, NO_MESSAGE = -32700, -32600  # codes of JSON-RPC


def serve(tools: Sequence[Tool]) -> None:
    """Answer the requests on standard input until it ends, or nobody reads the answers any more."""
    try:
        anyio.run(_run, tools)
    except* BrokenPipeError:
        pass
    # Python would wait for a thread that reads a pipe which nobody closes.
    if threading.active_count() > 1:
        sys.stderr.flush()
        os._exit(0)


async def _run(tools: Sequence[Tool]) -> None:
    server = _server({tool.name: tool for tool in tools})
    messages, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
    lines: Any = Lines(sys.stdin.buffer)
    async with stdio_server(stdin=lines) as (requests, answers), anyio.create_task_group() as together:
        together.start_soon(_relay, requests, messages, answers)
        await server.run(received, answers, server.create_initialization_options())
        together.cancel_scope.cancel()


class Lines:
    """The lines of a stream as they arrive, without blank ones. Of one that is too long comes TOO_LONG."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[str]:
        is_rest = False  # of a line that is too long
        while line := await self._part():
            ends = line.endswith(b"\n")
            if is_rest or (not ends and len(line) == LONGEST_LINE):
                if ends:
                    yield TOO_LONG
                is_rest = not ends
            elif line.strip():
                yield line.decode("utf-8", "replace")

    async def _part(self) -> bytes:
        part: bytes = await anyio.to_thread.run_sync(self._stream.readline, LONGEST_LINE, abandon_on_cancel=True)
        return part


async def _relay(requests: Any, messages: MemoryObjectSendStream[SessionMessage | Exception], answers: Any) -> None:
    """Pass on the messages of a client; what is none is answered with an error, and goes no further."""
    try:
        async with messages:
            async for message in requests:
                if isinstance(message, Exception):
                    error = mcp_types.JSONRPCError(jsonrpc="2.0", id=None, error=_unreadable(message))
                    await answers.send(SessionMessage(error))
                else:
                    await messages.send(message)
    finally:
        # The client has gone. What is computed stops at the next pause, but a download has none.
        last = threading.Timer(SECONDS_TO_END, os._exit, [0])
        last.daemon = True
        last.start()


def _unreadable(error: Exception) -> mcp_types.ErrorData:
    """What is wrong with a line: it is no JSON, or JSON of another kind."""
    kinds = {one["type"] for one in error.errors()} if isinstance(error, ValidationError) else set()
    if "json_invalid" in kinds:
        return mcp_types.ErrorData(code=NO_JSON, message=f"This line is no JSON of at most {LONGEST_LINE:,} bytes.")
    return mcp_types.ErrorData(code=NO_MESSAGE, message="This line is no request or notification of JSON-RPC 2.0.")


def _server(tools: dict[str, Tool]) -> Server[Any]:
    """Make a server that lists and runs the tools."""
    # A thread that was told to stop keeps its place until it has stopped.
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
            return _failed(f"There is no tool {quoted(parameters.name)}: choose from {', '.join(tools)}.")
        try:
            result = await anyio.to_thread.run_sync(_computed, tool, parameters.arguments, limiter=one_at_a_time)
        except BertcliError as error:
            return _failed(str(error))
        except (OSError, MemoryError) as error:
            return _failed(f"{tool.name} could not be done: {error}")
        text = json.dumps(result, ensure_ascii=False)
        return mcp_types.CallToolResult(
            content=[mcp_types.TextContent(type="text", text=text)], structured_content=result
        )

    return Server(
        "bertcli", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _computed(tool: Tool, arguments: Arguments | None) -> Any:
    """Compute a call, in a thread; it stops at the next pause once its request is cancelled."""
    anyio.from_thread.check_cancelled()
    with pausing(anyio.from_thread.check_cancelled):
        return tool.call(arguments or {})


def _failed(message: str) -> mcp_types.CallToolResult:
    """An answer that says why a call could not be done."""
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=message)], is_error=True)
