"""The server's description of itself: OpenAPI 3.1, made of the rows."""

import typing
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from limpet.model.errors import CODES
from limpet.model.operation import Operation
from limpet.model.version import VERSION
from limpet.surfaces.http.head import CALL
from limpet.surfaces.http.problem import MEDIA_TYPE

Schema = dict[str, Any]

_REF: Final = "#/components/schemas/{name}"
_PROBLEM: Final = {"$ref": _REF.format(name="Problem")}
# What a reader gets from the paths beside the operations: path, what it is for, media type, needs a token.
_PAGES: Final = (
    ("/healthz", "Answers while the process lives.", "application/json", False),
    ("/readyz", "Answers 200 once calls are taken.", "application/json", False),
    ("/metrics", "Numbers for Prometheus.", "text/plain", True),
    ("/openapi.json", "This description.", "application/json", True),
    ("/docs", "This description, for people.", "text/html", True),
    ("/v1/operations", "The operations by name.", "application/json", True),
)


class Problem(msgspec.Struct, kw_only=True):
    """A failure: limpet's own fields, then those of RFC 9457. More may follow, by the kind of failure."""

    ok: typing.Literal[False]
    error: str
    message: str
    type: str
    title: str
    status: int
    detail: str
    reason: str | msgspec.UnsetType = msgspec.UNSET
    field: str | msgspec.UnsetType = msgspec.UNSET


def describe(rows: Iterable[Operation[Any, Any]]) -> Schema:
    """The whole document, as JSON's values."""
    rows = list(rows)
    kinds: list[Any] = [Problem]
    for row in rows:
        kinds += [row.request, *answers_of(row)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    by_kind = dict(zip(kinds, schemas, strict=True))
    components["Problem"]["properties"]["error"] = {"enum": sorted(CODES)}
    document: Schema = {
        "openapi": "3.1.0",
        "info": {
            "title": "limpet",
            "version": VERSION,
            "description": "The shell that holds on: every operation is a POST with a JSON body, "
            "and answers with the same JSON on every surface.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": {path: {"get": _page(text, kind, needs_token)} for path, text, kind, needs_token in _PAGES}
        | {CALL + row.name: {"post": _operation(row, by_kind)} for row in rows},
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The content of the file `token` in the home. On the Unix socket it is not needed.",
                }
            },
        },
    }
    return _renamed(document, _short_names(components))


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """Types that share a name have their module's path before it: their dialect's name says as much."""
    short: dict[str, str] = {}
    for name in names:
        parts = name.split(".")
        wanted = f"{parts[-3] if parts[1:2] == ['dialects'] else parts[1]}.{parts[-1]}" if len(parts) > 1 else name
        short[name] = name if wanted in short.values() else wanted
    return short


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(each, names) for each in typing.cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    named = typing.cast("dict[str, Any]", value)
    renamed = {
        names.get(key, key) if key.startswith("limpet.") else key: _renamed(each, names) for key, each in named.items()
    }
    if isinstance(ref := renamed.get("$ref"), str):
        head, _, name = ref.rpartition("/")
        renamed["$ref"] = f"{head}/{names.get(name, name)}"
    return renamed


def answers_of(row: Operation[Any, Any]) -> tuple[type[Any], ...]:
    """The types of a row's answers: its response, and the timeouts that its handler may answer with."""
    answer = typing.get_type_hints(row.handle)["return"]
    return (row.response, *(kind for kind in typing.get_args(answer) if kind is not row.response))


def _operation(row: Operation[Any, Any], by_kind: dict[Any, Schema]) -> Schema:
    done, *timeouts = (by_kind[kind] for kind in answers_of(row))
    success: Schema = {
        "allOf": [done, {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}]
    }
    required = any(field.required for field in msgspec.structs.fields(row.request))
    return {
        "operationId": row.name,
        "tags": [row.name.partition(".")[0]],
        "summary": row.summary,
        "x-limpet-reads-only": row.reads_only,
        "x-limpet-repeatable": row.repeatable,
        "requestBody": {"required": required, "content": {"application/json": {"schema": by_kind[row.request]}}},
        "responses": {
            "200": _answer("The answer.", "application/json", {"anyOf": [success, *timeouts]} if timeouts else success),
            **_failures(),
        },
    }


def _page(summary: str, media_type: str, needs_token: bool) -> Schema:
    schema = {"type": "object"} if media_type == "application/json" else {"type": "string"}
    page: Schema = {"summary": summary, "responses": {"200": _answer(summary, media_type, schema), **_failures()}}
    return page if needs_token else page | {"security": []}


def _failures() -> Schema:
    by_status: dict[int, list[str]] = {}
    for code, status in CODES.items():
        by_status.setdefault(status, []).append(code)
    named = {str(status): _answer(", ".join(codes), MEDIA_TYPE, _PROBLEM) for status, codes in by_status.items()}
    return named | {"default": _answer("Any other failure of HTTP.", MEDIA_TYPE, _PROBLEM)}


def _answer(description: str, media_type: str, schema: Schema) -> Schema:
    return {"description": description, "content": {media_type: {"schema": schema}}}
