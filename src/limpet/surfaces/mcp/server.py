"""The server over the official SDK: its tools, its resources, its tasks. Importing this costs most of a second."""

import logging
from typing import Any, Final, cast

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from limpet.model.errors import Refusal
from limpet.model.version import VERSION
from limpet.surfaces.mcp.bounds import fit
from limpet.surfaces.mcp.calling import LONGEST_S, Answer, Calling, goes_on, is_one_shot
from limpet.surfaces.mcp.resources import Resources
from limpet.surfaces.mcp.tasks import AT_ONCE_S, Tasks, declares_tasks
from limpet.surfaces.mcp.words import INSTRUCTIONS

Context = ServerRequestContext[Any, Any]

CONTEXT: Final = "limpet/context"
"""In `_meta` of a call: the `context` of what it starts, from a client that keeps it from its model."""
_HINT: Final = CacheHint(ttl_ms=300_000, scope="private")
_log: Final = logging.getLogger("limpet.mcp")


def build(calling: Calling) -> Server[Any]:
    """A server of the chosen tools."""
    tools = calling.tools
    listed = [types.Tool.model_validate(tool.listed) for tool in tools.every]

    async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Any:
        tool = tools.find(params.name)
        if tool is None:
            known = ", ".join(each.name for each in tools.every)
            message = f"there is no tool {params.name[:80]!r} among those chosen: {known}"
            raise MCPError(types.INVALID_PARAMS, message)
        arguments = dict(params.arguments or {})
        told = cast("dict[str, Any]", context.meta or {}).get(CONTEXT)
        if told is not None and "context" in tool.row.request.__struct_encode_fields__:
            arguments.setdefault("context", told)
        as_task = is_one_shot(tool, arguments) and declares_tasks(context)
        patience_s = AT_ONCE_S if as_task else LONGEST_S
        try:
            answer = await calling.call(tool, arguments, context.session.report_progress, patience_s)
        except Exception:  # noqa: BLE001  (whatever it is, the client gets an answer and the log the rest)
            _log.exception("call of %s", tool.row.name)
            answer = Refusal("internal", "limpet failed at this; its log says why").answer()
        if as_task and goes_on(answer):
            return await tasks.created(answer["run_id"])
        return result_of(answer)

    resources = Resources(calling.backend) if tools.find("runs.read") else None
    server: Server[Any] = Server(
        "limpet",
        version=VERSION,
        title="limpet, the shell that holds on",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": _HINT},
        get_tool_input_schema=lambda name: None if (tool := tools.find(name)) is None else tool.listed["inputSchema"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=resources and resources.list,
        on_list_resource_templates=resources and resources.templates,
        on_read_resource=resources and resources.read,
    )
    tasks = Tasks(calling.backend)
    if any(tool.row.name == "shell" for tool in tools.every):
        tasks.serve_on(server)
    return server


def result_of(answer: Answer) -> types.CallToolResult:
    """An answer as the result of a call: whole as structured content, and as text for clients that know no better.

    A failure is an error; a wait whose time is over is none.
    """
    answer, text = fit(answer)
    is_error = not answer.get("ok") and answer.get("error") != "timeout"
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], structured_content=answer, is_error=is_error)
