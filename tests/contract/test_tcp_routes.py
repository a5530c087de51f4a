"""Nothing leads past the gate: every route and every upgrade over TCP asks for token, Host and Origin (6.6, 9.tcp)."""

import json
import re
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus

from .gateway import TcpGateway
from .home import Home
from .tcp import Port

REFUSED = (403, 421)


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    home = Home()
    try:
        yield Port(home)
    finally:
        home.close()


def routes(port: Port) -> list[tuple[str, str]]:
    """Every method and path that the daemon says it has, with something in place of what a path leaves open."""
    told = json.loads(port.request("GET", "/openapi.json", port.bearer).body)
    found = [
        (method.upper(), re.sub(r"\{[^}]*\}", "x", path))
        for path, methods in told["paths"].items()
        for method in methods
        if method in ("get", "post", "put", "delete", "patch", "head")
    ]
    assert ("POST", "/v1/call/shell") in found, found
    return [*found, ("GET", "/openapi.json"), ("GET", "/metrics"), ("POST", "/mcp"), ("GET", "/ws")]


@pytest.mark.requirement("6.6", "9.tcp", "F65")
def test_every_route_is_behind_the_gate(port: Port) -> None:
    for method, path in routes(port):
        open_to_all = path in ("/healthz", "/readyz", "/docs")
        body = b"{}" if method == "POST" else b""
        json_type = {"Content-Type": "application/json"} if body else {}
        if not open_to_all:
            without = port.request(method, path, json_type, body)
            assert without.status == 401, (method, path, without)
        for host in (
            "evil.example",
            f"127.0.0.1.evil:{port.number}",
            f"evil.example:{port.number}",
            "",
            "localhost.",
        ):
            forged = port.request(method, path, {**json_type, **port.bearer}, body, host)
            assert forged.status in (*REFUSED, 400), (method, path, host, forged)
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"https://{port.netloc}"):
            forged = port.request(method, path, {**json_type, **port.bearer, "Origin": origin}, body)
            assert forged.status in REFUSED, (method, path, origin, forged)


@pytest.mark.requirement("6.6", "9.tcp", "F65", "F66")
def test_a_websocket_needs_the_token_too(port: Port) -> None:
    for headers, protocols in (
        ({"Authorization": f"Bearer {port.token}"}, ()),
        ({}, (f"limpet.token.{port.token}",)),
        ({"Origin": port.url}, (f"limpet.token.{port.token}",)),
    ):
        with TcpGateway(port.url, headers=headers, protocols=protocols) as gateway:
            assert gateway.hello["type"] == "hello"
            assert gateway.call("shell", {"command": "echo hi"})["stdout"] == "hi\n"
    for headers, protocols in (
        ({}, ()),
        ({"Authorization": "Bearer nonsense"}, ()),
        ({}, ("limpet.token.nonsense",)),
        ({}, (f"limpet.token.{port.token}x",)),
        ({"Origin": "http://evil.example"}, (f"limpet.token.{port.token}",)),
        ({"Origin": "null", "Authorization": f"Bearer {port.token}"}, ()),
    ):
        with pytest.raises(InvalidStatus) as refused:
            TcpGateway(port.url, headers=headers, protocols=protocols)
        assert refused.value.response.status_code == (403 if "Origin" in headers else 401)
    with pytest.raises(InvalidStatus):
        TcpGateway(port.url + "/ws?token=" + port.token + "&x=")
