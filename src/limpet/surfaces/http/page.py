"""The description for people: one plain page, made of the same document; nothing of it is loaded from elsewhere."""

from collections.abc import Iterator
from html import escape
from typing import Any, Final

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
body { color: #222; background: #fff }
code, td:first-child { font-family: ui-monospace, monospace; font-size: 90% }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0 }
tr { border-top: 1px solid #ddd } section { margin-top: 2.5rem } small { color: #666 }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #161616 } tr { border-color: #444 } a { color: #8bf }
}
"""

SAFE_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
"""What keeps a page that was tampered with from doing anything: no script, no fetch, no frame."""


def render(document: dict[str, Any]) -> str:
    """The page; whatever stands in the document is text."""
    return "".join(_page(document))


def _page(document: dict[str, Any]) -> Iterator[str]:
    info, schemas = document["info"], document["components"]["schemas"]
    yield f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}</title>'
    yield f"<style>{_STYLE}</style><h1>{escape(info['title'])} <small>{escape(info['version'])}</small></h1>\n"
    yield f"<p>{escape(info['description'])}</p>\n"
    yield '<p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>\n<table>'
    for path, methods in document["paths"].items():
        for method, what in methods.items():
            name = f"{method.upper()} {path}"
            yield f'<tr><td><a href="#{escape(path)}">{escape(name)}</a></td><td>{escape(what["summary"])}</td></tr>\n'
    yield "</table>\n"
    for path, methods in document["paths"].items():
        for method, what in methods.items():
            yield f'<section id="{escape(path)}"><h2><code>{method.upper()} {escape(path)}</code></h2>'
            yield f"<p>{escape(what['summary'])}</p>\n"
            if "requestBody" in what:
                yield "<h3>Body</h3>\n"
                yield from _fields(_schema_in(what["requestBody"]), schemas)
                yield "<h3>Answer</h3>\n"
                yield from _answers(_schema_in(what["responses"]["200"]), schemas)
            yield "</section>\n"
    for name, schema in schemas.items():
        yield f'<section id="{escape(name)}"><h2>{escape(name)}</h2><p>{escape(schema.get("description", ""))}</p>\n'
        yield from _fields(schema, schemas)
        yield "</section>\n"


def _schema_in(part: dict[str, Any]) -> dict[str, Any]:
    return part["content"]["application/json"]["schema"]


def _answers(schema: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    for one in schema.get("anyOf", [schema]):
        yield from _fields(one["allOf"][0] if "allOf" in one else one, schemas)


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        schema = schemas[_name(schema)]
    properties = schema.get("properties", {})
    if not properties:
        yield "<p>No fields.</p>\n"
        return
    yield "<table>"
    for name, field in properties.items():
        needed = " (required)" if name in schema.get("required", ()) else ""
        yield f"<tr><td>{escape(name)}</td><td>{_words(field)}{needed}</td></tr>\n"
    yield "</table>\n"


def _words(schema: dict[str, Any]) -> str:
    """A type in HTML: names lead to where they are described."""
    if "$ref" in schema:
        name = escape(_name(schema))
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_words(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_words(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_words(schema['additionalProperties'])}"
    return escape(str(schema.get("type", "anything")))


def _name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]
