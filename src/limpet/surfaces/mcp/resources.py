"""What runs said, as resources: `limpet://runs/RUN/STREAM`."""

import re
from typing import Any, Final
from urllib.parse import parse_qsl

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from limpet.surfaces.mcp.calling import Answer, Backend

Context = ServerRequestContext[Any, Any]

MOST_BYTES: Final = 256 * 1024
"""Of one read; what is left out is said in its `_meta`, and can be read by `offset`."""
_PAGE_RUNS: Final = 50
_URI: Final = re.compile(r"limpet://runs/(?P<run_id>[A-Za-z0-9._-]+)/(?P<stream>stdout|stderr|pty)(?:\?(?P<query>.*))?")
_TEMPLATE: Final = "limpet://runs/{run_id}/{stream}{?offset,max_bytes,encoding}"
_META: Final = "limpet/"


class Resources:
    """The output of every run; lists the newest."""

    def __init__(self, backend: Backend) -> None:
        self._backend: Final = backend

    async def list(self, _context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The streams of the newest runs, and a cursor to older ones."""
        asked: dict[str, Any] = {"limit": _PAGE_RUNS}
        if params is not None and params.cursor is not None:
            asked["cursor"] = params.cursor
        page = checked(await self._backend.call("runs.list", asked))
        listed = [
            types.Resource(
                uri=f"limpet://runs/{run['run_id']}/{name}",
                name=f"{run['run_id']}/{name}",
                description=f"{run['status']}: {run['command'][:200]}",
                mime_type="text/plain",
                size=stream["bytes"],
            )
            for run in page["runs"]
            for name, stream in run["streams"].items()
        ]
        return types.ListResourcesResult(resources=listed, next_cursor=page["next_cursor"])

    async def templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The one form of every resource."""
        template = types.ResourceTemplate(
            uri_template=_TEMPLATE,
            name="output",
            description=f"What a run said on stdout, stderr or pty: its last {MOST_BYTES} bytes, or those from an "
            "offset on; encoding base64 gives them exactly.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, _context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """The bytes, and where they stand."""
        uri = str(params.uri)
        found = _URI.fullmatch(uri)
        if found is None:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no such resource: the form is {_TEMPLATE}", {"uri": uri[:500]}
            )
        asked: dict[str, Any] = {"run_id": found["run_id"], "stream": found["stream"], **_range(found["query"], uri)}
        page = checked(await self._backend.call("runs.read", asked), uri=uri)
        where = {_META + name: page[name] for name in ("offset_bytes", "next_offset", "total_bytes", "base", "eof")}
        contents: types.TextResourceContents | types.BlobResourceContents
        if page["encoding"] == "base64":
            contents = types.BlobResourceContents(
                uri=uri, mime_type="application/octet-stream", blob=page["data"], _meta=where
            )
        else:
            contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=page["data"], _meta=where)
        return types.ReadResourceResult(contents=[contents])


def _range(query: str | None, uri: str) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    for name, value in parse_qsl(query or "", keep_blank_values=True):
        if name in ("offset", "max_bytes") and value.isascii() and value.isdigit() and len(value) < 20:
            asked[name] = int(value)
        elif name == "encoding":
            asked[name] = value
        else:
            message = f"{name[:80]}={value[:80]} is not understood: the form is {_TEMPLATE}"
            raise MCPError(types.INVALID_PARAMS, message, {"uri": uri[:500]})
    if "offset" not in asked:
        asked["last_bytes"] = min(asked.pop("max_bytes", MOST_BYTES), MOST_BYTES)
    asked["max_bytes"] = max(1, min(asked.get("max_bytes", MOST_BYTES), MOST_BYTES))
    return asked


def checked(answer: Answer, **data: Any) -> Answer:
    """The answer, unless it is a failure: where no tool is called, that is an error of the protocol."""
    if answer.get("ok"):
        return answer
    code = types.INTERNAL_ERROR if answer.get("error") in ("internal", "unavailable") else types.INVALID_PARAMS
    raise MCPError(code, str(answer.get("message")), {**answer, **data})
