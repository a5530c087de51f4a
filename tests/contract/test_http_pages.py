"""What the daemon says of itself over HTTP: its schema, its health, its metrics (6.5)."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .every_operation import operations
from .surface import Http

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "operations.md"


def schemas(told: Any) -> list[Any]:
    """Every object of a document that says what it is."""
    if isinstance(told, dict):
        return [told, *(each for inner in told.values() for each in schemas(inner))]  # pyright: ignore[reportUnknownVariableType]
    return [each for inner in told for each in schemas(inner)] if isinstance(told, list) else []  # pyright: ignore[reportUnknownVariableType]


@pytest.mark.requirement("0.2", "6.5")
def test_the_schema_has_every_operation(http: Http) -> None:
    told = json.loads(http.request("GET", "/openapi.json").body)
    assert told["openapi"].startswith("3.")
    for name in operations(REFERENCE.read_text("utf-8")):
        post = told["paths"][f"/v1/call/{name}"]["post"]
        body = post["requestBody"]["content"]["application/json"]["schema"]
        assert body, name
        assert set(post["responses"]) > {"200"}, name
        assert "application/json" in post["responses"]["200"]["content"], name
    for schema in schemas(told):
        if isinstance(schema.get("$ref"), str):
            place: Any = told
            for step in schema["$ref"].removeprefix("#/").split("/"):
                place = place[step.replace("~1", "/").replace("~0", "~")]


@pytest.mark.requirement("6.5")
def test_health_and_readiness(http: Http) -> None:
    for path in ("/healthz", "/readyz"):
        reply = http.request("GET", path)
        assert reply.status == 200, (path, reply)
    docs = http.request("GET", "/docs")
    assert (docs.status, docs.media) == (200, "text/html")
    # A page that loads code from elsewhere would let it call the daemon.
    assert b"https://" not in docs.body.replace(b"https://spec.openapis.org", b""), docs.body[:2000]


def counted(http: Http) -> dict[str, float]:
    reply = http.request("GET", "/metrics")
    assert (reply.status, reply.media) == (200, "text/plain")
    return {
        sample.name + json.dumps(sample.labels, sort_keys=True): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


@pytest.mark.requirement("6.5")
def test_metrics_count_what_happens(http: Http) -> None:
    before = counted(http)
    for _ in range(3):
        http.ok("shell", {"command": "true"})
    after = counted(http)
    grown = {name: value - before.get(name, 0.0) for name, value in after.items() if value > before.get(name, 0.0)}
    assert any(name.startswith("limpet_") and "run" in name for name in grown), sorted(after)
    assert all(value >= 0 or name not in grown for name, value in after.items())
