"""The tasks extension: a command that takes longer becomes a task, whose state is its run's and nothing else's."""

from datetime import UTC, datetime
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from limpet.surfaces.mcp.bounds import fit
from limpet.surfaces.mcp.calling import ROOM_BYTES, Answer, Backend
from limpet.surfaces.mcp.resources import checked

Context = ServerRequestContext[Any, Any]

EXTENSION: Final = "io.modelcontextprotocol/tasks"
AT_ONCE_S: Final = 5.0
"""What ends sooner is answered as for every client."""
_POLL_MS: Final = 2000


class TaskParams(types.RequestParams):
    """Of each of the extension's methods: which task."""

    task_id: str


def declares_tasks(context: Context) -> bool:
    """Whether this request's client can be given a task instead of a result."""
    capabilities = context.session.client_capabilities
    extensions = None if capabilities is None else capabilities.extensions
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS and EXTENSION in (extensions or {})


class Tasks:
    """A task's id is its run's id, so it outlives this process, and every server of the home knows it."""

    def __init__(self, backend: Backend) -> None:
        self._backend: Final = backend

    def serve_on(self, server: Server[Any]) -> None:
        """Adds the extension's methods, and says so to clients."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", TaskParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    async def created(self, run_id: str) -> dict[str, Any]:
        """The result that stands for a call whose command goes on."""
        return {"resultType": "task", **_task_of(await self._facts(run_id))}

    async def _get(self, context: Context, params: TaskParams) -> dict[str, Any]:
        _check(context)
        facts = await self._facts(params.task_id)
        task = _task_of(facts)
        if task["status"] == "completed":
            answer, text = fit(await self._outcome(facts))
            task["result"] = {
                "content": [{"type": "text", "text": text}],
                "structuredContent": answer,
                "isError": False,
            }
        return {"resultType": "complete", **task}

    async def _update(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """Nothing is ever asked of a client, so there is nothing to take."""
        _check(context)
        await self._facts(params.task_id)
        return {"resultType": "complete"}

    async def _cancel(self, context: Context, params: TaskParams) -> dict[str, Any]:
        _check(context)
        await self._facts(params.task_id)
        checked(await self._backend.call("runs.kill", {"run_id": params.task_id}))
        return {"resultType": "complete"}

    async def _facts(self, run_id: str) -> Answer:
        facts = checked(await self._backend.call("runs.get", {"run_id": run_id}))
        if facts["dialect"] != "shell":
            raise MCPError(types.INVALID_PARAMS, f"there is no task {run_id[:80]!r}")
        return facts

    async def _outcome(self, facts: Answer) -> Answer:
        """What the call would have answered, had it waited for the end."""
        omitted: dict[str, Any] = {}
        texts = {"stdout": "", "stderr": ""}
        for stream in facts["streams"]:
            text = await self._text(facts["run_id"], stream, omitted)
            texts["stderr" if stream == "stderr" else "stdout"] = text
        began = facts["started_at"] or facts["finished_at"] or 0
        answer: Answer = {"ok": True}
        answer |= {name: facts[name] for name in ("run_id", "session_id", "status", "exit_code", "signal")}
        answer |= {**texts, "truncated": facts["truncated"], "timed_out": facts["ended_by"] == "timeout"}
        answer["duration_ms"] = max(0, (facts["finished_at"] or began) - began)
        answer["error_message"] = facts["error_message"]
        return answer | ({"omitted": omitted} if omitted else {})

    async def _text(self, run_id: str, stream: str, omitted: dict[str, Any]) -> str:
        """The end of a stream: how it went mostly says more than how it began."""
        asked = {"run_id": run_id, "stream": stream, "last_bytes": ROOM_BYTES, "max_bytes": ROOM_BYTES}
        page = await self._backend.call("runs.read", asked)
        if not page.get("ok"):
            return f"[... {page.get('message')} ...]\n"
        if page["offset_bytes"] == 0:
            return str(page["data"])
        begin = page["offset_bytes"]
        omitted[stream] = {"start": 0, "end": begin}
        return f"[... {begin} bytes left out: {stream} from 0 to {begin} ...]\n{page['data']}"


def _check(context: Context) -> None:
    if not declares_tasks(context):
        data: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        message = f"declare the extension {EXTENSION} in the request's client capabilities"
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)


def _task_of(facts: Answer) -> dict[str, Any]:
    status = {"queued": "working", "running": "working", "killed": "cancelled"}.get(facts["status"], "completed")
    said = f"{facts['status']}, run {facts['run_id']}"
    return {
        "taskId": facts["run_id"],
        "status": status,
        "statusMessage": said if facts["exit_code"] is None else f"{said}, exit code {facts['exit_code']}",
        "createdAt": _iso(facts["created_at"]),
        "lastUpdatedAt": _iso(facts["finished_at"] or facts["started_at"] or facts["created_at"]),
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }


def _iso(at_ms: int | None) -> str:
    return datetime.fromtimestamp((at_ms or 0) / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
