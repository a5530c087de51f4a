"""Calls over HTTP: what goes in and out, on the hot route and beside it."""

import asyncio
import base64
import json
import logging
from pathlib import Path

import pytest

from limpet.model.errors import CODES

from .serving import Reply, ask, calling, post, serving

# The same call as it takes the hot route, and as it does not.
ROUTES = [pytest.param("", id="hot"), pytest.param("?beside", id="beside")]


def once(home: Path, request: bytes) -> Reply:
    async def scenario() -> Reply:
        async with serving(home) as place:
            return await asyncio.wait_for(ask(place, request), 20)

    return asyncio.run(scenario())


def problem(reply: Reply, code: str, status: int | None = None) -> dict[str, object]:
    answer = reply.json()
    assert reply.headers["content-type"] == "application/problem+json"
    assert (reply.status, answer["status"]) == (status or CODES[code],) * 2
    assert (answer["ok"], answer["error"]) == (False, code)
    assert answer["detail"] == answer["message"]
    assert answer["type"]
    assert answer["title"]
    return answer


@pytest.mark.parametrize("route", ROUTES)
def test_an_answer_is_ok_first(tmp_path: Path, route: str) -> None:
    reply = once(tmp_path, post("try.echo" + route, b'{"text":"h\\u00e9"}'))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.body == '{"ok":true,"text":"hé","calls":1}'.encode()


@pytest.mark.parametrize("route", ROUTES)
def test_an_empty_answer_and_an_empty_body(tmp_path: Path, route: str) -> None:
    assert once(tmp_path, post("try.nothing" + route, b"")).body == b'{"ok":true}'


@pytest.mark.parametrize("route", ROUTES)
def test_a_timeout_is_an_answer(tmp_path: Path, route: str) -> None:
    reply = once(tmp_path, post("try.time_out" + route))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    answer = reply.json()
    assert list(answer)[:2] == ["ok", "error"]
    assert (answer["ok"], answer["error"], answer["next_seq"]) == (False, "timeout", 7)


@pytest.mark.parametrize("route", ROUTES)
def test_a_refusal_keeps_its_fields(tmp_path: Path, route: str) -> None:
    answer = problem(once(tmp_path, post("try.refuse" + route)), "busy")
    assert (answer["reason"], answer["mode"]) == ("mode", "interactive")


@pytest.mark.requirement("0.3")
@pytest.mark.parametrize("route", ROUTES)
def test_what_nobody_expected_is_an_incident(tmp_path: Path, route: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        reply = once(tmp_path, post("try.fail" + route))
    answer = problem(reply, "internal")
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body
    (record,) = caplog.records
    line = record.getMessage()
    assert str(answer["incident"]) in line
    assert "ZeroDivisionError" in line
    assert "\n" not in line
    assert record.exc_info is None


@pytest.mark.parametrize("route", ROUTES)
def test_an_unknown_operation_names_near_ones(tmp_path: Path, route: str) -> None:
    answer = problem(once(tmp_path, post("try.ehco" + route)), "not_found")
    assert "try.echo" in str(answer["message"])


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: json\r\n",
    ],
)
def test_only_json_is_taken(tmp_path: Path, route: str, headers: str) -> None:
    answer = problem(once(tmp_path, post("try.nothing" + route, b"{}", headers)), "invalid_argument")
    assert "Content-Type" in str(answer["message"])


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_may_have_parameters(tmp_path: Path, kind: str) -> None:
    assert once(tmp_path, post("try.nothing", b"{}", f"content-type: {kind}\r\n")).status == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"text":5}', "text"),
        (b"{}", "text"),
        (b'{"text":"x","number":"3"}', "number"),
        (b'{"text":"x","number":1e1}', "number"),
        (b'{"text":"x","number":true}', "number"),
        (b'{"text":"x","number":101}', "number"),
        (b'{"text":"x","number":' + b"9" * 5000 + b"}", "number"),
        (b'{"text":"x","flag":1}', "flag"),
        (b'{"text":"x","ratio":1e999}', "ratio"),
        (b'{"text":"x","mode":"three"}', "mode"),
        (b'{"text":"x","env":{"A":1}}', "env"),
        (b'{"text":"x","items":[1,"2"]}', "items[1]"),
        (b'{"text":"x","txet":"y"}', "txet"),
        (b'{"text":"x","text":"y"}', "text"),
        (b'{"text":"x","env":{"A":"1","A":"2"}}', "A"),
        (b'{"text":"\\u003a","text":":"}', "text"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, body: bytes, field: str) -> None:
    answer = problem(once(tmp_path, post("try.echo", body)), "invalid_argument")
    assert answer["field"] == field
    assert f"`{field}`" in str(answer["message"])
    assert "$" not in str(answer["message"])


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'{"text":"x"}}',
        b'{"text":NaN}',
        b'{"text":"x","ratio":Infinity}',
        b'{"text":"\\ud800"}',
        b'{"text":"\xff"}',
        b'{"text":"x","env":{"\xed\xa0\x80":"x"}}',
        b'{"text":' + b"[" * 100_000,
        b'{"text":"x","zz":' + b'{"a":' * 100_000,
        b"[" * 100_000,
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda body: repr(body[:30]),
)
def test_what_is_no_json_is_refused(tmp_path: Path, body: bytes) -> None:
    problem(once(tmp_path, post("try.echo", body)), "invalid_argument")


def test_colons_in_texts_are_no_duplicates(tmp_path: Path) -> None:
    text = 'a:b "c":d \\u003a'
    body = json.dumps({"text": text, "env": {"A:B": "::", "C": ":"}}).encode().replace(b"\\\\u003a", b"\\u003a")
    assert once(tmp_path, post("try.echo", body)).json()["text"] == 'a:b "c":d :'


def caller_header(ambient: object) -> str:
    return f"Limpet-Caller: {base64.b64encode(json.dumps(ambient).encode()).decode()}\r\n"


@pytest.mark.parametrize("route", ROUTES)
def test_the_callers_cwd_and_environment_travel_beside_the_request(tmp_path: Path, route: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            ambient = {"cwd": "/here", "env": {"A": "b" * 300_000}, "surface": "cli"}
            headers = "Content-Type: application/json\r\n" + caller_header(ambient)
            reply = await ask(place, post("try.echo" + route, b'{"text":"x"}', headers))
            assert reply.status == 200
            (caller,) = place.engine.callers
            assert (caller.cwd, caller.env, caller.surface) == ("/here", ambient["env"], "cli")

    asyncio.run(scenario())


@pytest.mark.parametrize("value", ["?", "W10=", base64.b64encode(b'{"cwd":5}').decode()])
def test_a_callers_header_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    headers = f"Content-Type: application/json\r\nLimpet-Caller: {value}\r\n"
    answer = problem(once(tmp_path, post("try.nothing", b"{}", headers)), "invalid_argument")
    assert "Limpet-Caller" in str(answer["message"])


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_post_calls(tmp_path: Path, method: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            request = f"{method} /v1/call/try.nothing HTTP/1.1\r\nHost: l\r\nContent-Length: 0\r\n\r\n"
            reply = await ask(place, request.encode())
            problem(reply, "invalid_argument", 405)
            assert reply.headers["allow"] == "POST"
            assert place.engine.calls == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/call", "/v1/call/", "/v1/call/a/b", "/v1/call/try.nothing/"])
def test_nothing_there(tmp_path: Path, path: str) -> None:
    request = f"POST {path} HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    problem(once(tmp_path, request.encode()), "not_found")


def test_health_and_the_rows(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            for path in ("/healthz", "/readyz", "/v1/operations"):
                caller.send(f"GET {path} HTTP/1.1\r\nHost: l\r\n\r\n".encode())
            assert (await caller.reply()).json()["ok"] is True
            assert (await caller.reply()).json()["ok"] is True
            rows = {row["name"]: row for row in (await caller.reply()).json()["operations"]}
            assert rows["try.wait"]["repeatable"] is True
            assert rows["try.once"]["repeatable"] is False

    asyncio.run(scenario())
