"""What the server says of itself: ids of requests, its description, its page, its numbers."""

import asyncio
import html.parser
import json
import logging
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from limpet.dialects import ROWS as REAL_ROWS
from limpet.surfaces.http import app as app_module
from limpet.surfaces.http.names import request_id_of, trace_of
from limpet.surfaces.http.openapi import describe
from limpet.surfaces.http.page import render

from .serving import Place, Reply, ask, calling, post, serving

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: limpet\r\n{headers}\r\n".encode()


async def read(place: Place, path: str) -> Reply:
    reply = await ask(place, get(path))
    assert reply.status == 200
    assert reply.headers["x-content-type-options"] == "nosniff"
    return reply


@pytest.mark.requirement("6.5")
def test_every_answer_has_the_id_of_its_request(tmp_path: Path) -> None:
    """On the hot route, beside it, from the gate, and where it is no HTTP; given ones are kept, where they are ids."""

    async def scenario() -> None:
        async with serving(tmp_path) as place:
            seen: set[str] = set()
            requests = [
                post("try.nothing"),
                post("try.nothing?beside"),
                post("try.refuse"),
                post("try.nothing", headers=""),
                get("/healthz"),
                get("/nothing"),
                get("/healthz", "Origin: null\r\n"),
                b"nonsense\r\n\r\n",
            ]
            for request in requests * 2:
                seen.add((await ask(place, request)).headers["x-request-id"])
            assert len(seen) == len(requests) * 2
            json_type = "Content-Type: application/json\r\n"
            for given, kept in (("abc.1-2_3", True), ("a b", False), ("", False), ("x" * 129, False), ("é", False)):
                for request in (
                    post("try.nothing", headers=f"{json_type}X-Request-Id: {given}\r\n"),
                    post("try.nothing?beside", headers=f"{json_type}X-Request-Id: {given}\r\n"),
                    post("try.nothing", headers=f"X-Request-Id: {given}\r\n"),
                ):
                    assert ((await ask(place, request)).headers["x-request-id"] == given) is kept

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.5")
def test_the_log_names_the_request_that_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            headers = "Content-Type: application/json\r\nX-Request-Id: mine-7\r\n"
            assert (await ask(place, post("try.fail", headers=headers))).status == 500

    with caplog.at_level(logging.ERROR):
        asyncio.run(asyncio.wait_for(scenario(), 20))
    assert "mine-7" in caplog.text


@pytest.mark.requirement("6.5")
@pytest.mark.parametrize(
    ("parent", "state", "trace"),
    [
        (TRACE, None, {"TRACEPARENT": TRACE}),
        (TRACE, "a=1,b=2", {"TRACEPARENT": TRACE, "TRACESTATE": "a=1,b=2"}),
        (TRACE, "a=\xff", {"TRACEPARENT": TRACE}),
        (TRACE, "x" * 513, {"TRACEPARENT": TRACE}),
        ("01" + TRACE[2:] + "-more", None, {"TRACEPARENT": TRACE}),
        (TRACE + "-more", None, None),
        (TRACE.upper(), None, None),
        ("ff" + TRACE[2:], None, None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None, None),
        (f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01", None, None),
        (f"{TRACE},{TRACE}", None, None),
        ("", "a=1", None),
    ],
)
def test_traces(parent: str, state: str | None, trace: dict[str, str] | None) -> None:
    found = {b"traceparent": parent.encode("latin-1")}
    if state is not None:
        found[b"tracestate"] = state.encode("latin-1")
    assert trace_of(found) == trace


def test_ids_of_ours_are_ids() -> None:
    made = {request_id_of(b"") for _ in range(100)}
    assert len(made) == 100
    assert all(request_id_of(each.encode()) == each for each in made)


def references(document: bytes) -> set[str]:
    """Every `$ref` in a document."""
    return set(re.findall(r'"\$ref":"([^"]*)"', document.decode()))


@pytest.mark.requirement("0.2", "6.5")
def test_the_description_has_every_operation_and_refers_to_nothing_that_is_not_there() -> None:
    written = msgspec.json.encode(describe(REAL_ROWS))
    document = msgspec.json.decode(written)
    assert document["openapi"].startswith("3.1")
    for row in REAL_ROWS:
        told = document["paths"][f"/v1/call/{row.name}"]["post"]
        assert told["summary"] == row.summary
        assert {"200", "400", "401", "403", "404", "default"} <= set(told["responses"])
    names = set(document["components"]["schemas"])
    assert {ref.removeprefix("#/components/schemas/") for ref in references(written)} <= names
    assert "limpet." not in json.dumps(sorted(names))


class Page(html.parser.HTMLParser):
    """The tags, links and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}
        self.ids |= {value or "" for name, value in attrs if name == "id"}
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.requirement("6.5", "6.7")
def test_the_page_is_whole_and_loads_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            reply = await read(place, "/docs")
            assert reply.headers["content-type"].startswith("text/html")
            assert "default-src 'none'" in reply.headers["content-security-policy"]

    asyncio.run(asyncio.wait_for(scenario(), 20))
    page = Page(render(describe(REAL_ROWS)))
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form"}
    assert all(link in ("/openapi.json", *(f"#{each}" for each in page.ids)) for link in page.links)
    for row in REAL_ROWS:
        assert f"POST /v1/call/{row.name}" in page.text
        assert row.summary in page.text


@pytest.mark.requirement("6.7")
def test_whatever_stands_in_the_description_is_text_on_the_page() -> None:
    """Injector: a script in every text of the document, names of fields and types included."""
    hostile = "<script>alert('1')</script>\"'&"
    document = describe(REAL_ROWS)
    document["info"]["title"] = document["info"]["version"] = document["info"]["description"] = hostile
    told = document["paths"]["/v1/call/shell"]["post"]
    told["summary"] = hostile
    document["paths"][f"/v1/{hostile}"] = {"post": told}
    document["components"]["schemas"]["Problem"] = {
        "description": hostile,
        "properties": {hostile: {"type": hostile}, "a": {"enum": [hostile]}, "b": {"$ref": f"#/x/{hostile}"}},
    }
    page = Page(render(document))
    assert "script" not in page.tags
    assert page.text.count(hostile) >= 8


def samples(reply: Reply) -> dict[tuple[str, str], float]:
    """Every number, by its name and its labels."""
    assert reply.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, json.dumps(sample.labels, sort_keys=True)): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


@pytest.mark.requirement("6.5")
def test_numbers_count_what_happens(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            for name in ("try.nothing", "try.nothing", "try.refuse", "try.time_out", "try.fail", "no.such", 'a"b\n{}'):
                for beside in ("", "?beside"):
                    await ask(place, post(name.replace("\n", "%0A").replace('"', "%22") + beside))
            await ask(place, get("/healthz", "Origin: null\r\n"))
            await ask(place, get("/healthz"), tcp=True)
            async with calling(place):
                told = samples(await read(place, "/metrics"))

        def calls(operation: str, outcome: str) -> float:
            return told["limpet_calls_total", json.dumps({"operation": operation, "outcome": outcome}, sort_keys=True)]

        assert calls("try.nothing", "ok") == 4
        assert calls("try.refuse", "busy") == 2
        assert calls("try.time_out", "timeout") == 2
        assert calls("try.fail", "internal") == 2
        assert calls("unknown", "not_found") == 4
        assert told["limpet_call_seconds_count", '{"operation": "try.nothing"}'] == 4
        assert told["limpet_call_seconds_bucket", '{"le": "+Inf", "operation": "try.nothing"}'] == 4
        assert told["limpet_refused_at_gate_total", '{"reason": "wrong_origin"}'] == 1
        assert told["limpet_connections", '{"way": "socket"}'] >= 1
        operations = {json.loads(labels).get("operation") for name, labels in told if name == "limpet_calls_total"}
        assert operations == {"try.nothing", "try.refuse", "try.time_out", "try.fail", "unknown"}

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.5")
def test_readiness_is_another_thing_than_health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Injector: an application that is not ready; it lives, and says that it is not."""
    monkeypatch.setattr(app_module.App, "__init__", _unready(app_module.App.__init__))

    async def scenario() -> None:
        async with serving(tmp_path) as place:
            assert (await ask(place, get("/healthz"))).status == 200
            reply = await ask(place, get("/readyz"))
            assert (reply.status, reply.json()["reason"]) == (503, "starting")

    asyncio.run(asyncio.wait_for(scenario(), 20))


def _unready(make: Any) -> Any:
    def made(self: Any, calls: Any, _is_ready: Any, **more: Any) -> None:
        make(self, calls, lambda: False, **more)

    return made


def test_nothing_of_it_is_paid_for_by_a_daemon_that_nobody_asks() -> None:
    """The modules that these pages need are not there before somebody asks."""
    import subprocess
    import sys

    code = "import sys, limpet.daemon; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert not re.findall(r"\b(prometheus_client|limpet\.surfaces\.http\.(?:openapi|page))\b", loaded)
