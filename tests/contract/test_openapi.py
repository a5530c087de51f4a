"""The daemon against its own description, over TCP; and a trace that goes through to what a call starts (6.5)."""

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from limpet.dialects import ROWS

from .home import Home
from .surface import Http, UnixConnection

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
# These run what is drawn, wait as long as is drawn, or end the daemon.
NOT_CALLED = {"shell", "runs.wait", "daemon.stop"} | {
    row.name for row in ROWS if "wait_ms" in row.request.__struct_fields__
}
# Ids that name nothing fit the description, and are refused; a POST without JSON is refused wherever it goes.
NOT_CHECKED = "positive_data_acceptance,unsupported_method"


@pytest.mark.requirement("6.5")
def test_the_daemon_is_as_it_describes_itself(new_home: Callable[..., Home]) -> None:
    """Injector: requests that schemathesis draws from the description, fitting ones and others."""
    home = new_home()
    ready = home.serve("--port", "0")
    token = (home.path / "token").read_text().strip()
    done = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"),
            *("run", f"{ready['url']}/openapi.json", "--header", f"Authorization: Bearer {token}"),
            *("--phases", "coverage,fuzzing", "--max-examples", "2", "--seed", "1", "--no-color"),
            *("--exclude-checks", NOT_CHECKED, "--suppress-health-check", "all", "--request-timeout", "60"),
            *(part for name in sorted(NOT_CALLED) for part in ("--exclude-operation-id", name)),
        ],
        cwd=home.work,
        env=home.env,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    found = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert found, done.stdout[-2000:]
    assert int(found[1]) == int(found[2]) > 1000, done.stdout[-8000:]
    tested = int(done.stdout.partition("Tested: ")[2].split()[0])
    assert tested > 30, done.stdout[-2000:]
    assert Http(home).ok("daemon.status")["pid"] == ready["pid"]


@pytest.mark.requirement("6.5", "0.10")
def test_a_trace_goes_through_to_the_commands_environment(house: Home) -> None:
    def environment(headers: dict[str, str], **params: object) -> dict[str, str]:
        connection: http.client.HTTPConnection = UnixConnection(house.socket, 60)
        try:
            body = json.dumps({"command": "env", **params})
            connection.request("POST", "/v1/call/shell", body, {"Content-Type": "application/json", **headers})
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        lines = [line.partition("=") for line in answer["stdout"].splitlines()]
        return {name: value for name, _, value in lines if name.startswith("TRACE")}

    assert environment({}) == {}
    assert environment({"traceparent": "nonsense", "tracestate": "a=1"}) == {}
    assert environment({"traceparent": TRACE}) == {"TRACEPARENT": TRACE}
    told = environment({"Traceparent": TRACE, "Tracestate": "a=1"}, env={"TRACESTATE": "mine"})
    assert told == {"TRACEPARENT": TRACE, "TRACESTATE": "mine"}
