"""MCP over stdio: tools chosen and described, answers, progress, cancelling, long waits, resources (6.4, 9.mcp)."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .every_operation import operations
from .home import Answer, Home, until
from .mcp_lines import McpError, McpLines, told_by
from .surface import Http

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "operations.md"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.fixture(scope="module")
def server(house: Home) -> Iterator[McpLines]:
    with McpLines(house, "--tools", "all") as server:
        yield server


def tool(server: McpLines, name: str, **params: Any) -> Answer:
    return told_by(server.tool(name, params))


@pytest.mark.requirement("6.4")
def test_every_operation_is_a_tool_that_says_what_it_is(server: McpLines) -> None:
    assert server.server["serverInfo"]["name"] == "limpet"
    tools = server.tools()
    names = {name.replace(".", "_") for name in operations(REFERENCE.read_text("utf-8"))}
    assert set(tools) >= names
    for name, each in tools.items():
        assert NAME.fullmatch(name), name
        assert len(each["description"]) > 20, each
        assert each["inputSchema"]["type"] == "object", each
        assert each["inputSchema"].get("additionalProperties") is False, each
        assert each["outputSchema"]["type"] == "object", each
        assert isinstance(each["annotations"], dict), each
    assert tools["runs_get"]["annotations"]["readOnlyHint"] is True
    # What is not said to read only, may change things: the protocol's own default.
    for name in ("runs_kill", "shell", "pty_run"):
        assert not tools[name]["annotations"].get("readOnlyHint", False), name


@pytest.mark.requirement("6.4")
def test_what_an_agent_gets_is_small(house: Home) -> None:
    with McpLines(house) as server:
        tools = server.tools()
    assert 1 <= len(tools) <= 12
    assert "shell" in tools
    words = [
        {name: each[name] for name in ("name", "description", "inputSchema") if name in each} for each in tools.values()
    ]
    # Four bytes of JSON are about a token.
    assert len(json.dumps(words, separators=(",", ":"))) / 4 < 6000


@pytest.mark.requirement("6.4")
def test_what_is_not_chosen_cannot_be_called(house: Home, tmp_path: Path) -> None:
    with McpLines(house, "--tools", "pty,runs") as server:
        tools = server.tools()
        assert "pty_run" in tools
        assert "runs_list" in tools
        assert "shell" not in tools
        for name in ("shell", "backlog_take", "backlog.take", "no_such_tool"):
            try:
                result = server.tool(name, {"command": f": >'{tmp_path}/ran'"})
            except McpError as error:
                assert name in error.message, error  # noqa: PT017
            else:
                assert result["isError"] is True, result
        assert list(tmp_path.iterdir()) == []
    wrong = house.limpet("mcp", "--tools", "nosuch")
    assert wrong.returncode == 2, wrong
    assert b"nosuch" in wrong.stderr, wrong


@pytest.mark.requirement("6.4")
def test_a_dotted_name_works_too(server: McpLines) -> None:
    assert told_by(server.tool("runs.list", {"limit": 1}))["ok"] is True


@pytest.mark.requirement("6.4", "0.3")
def test_failures_are_results_and_timeouts_are_no_errors(server: McpLines) -> None:
    ran = tool(server, "shell", command="echo out; exit 3")
    assert (ran["stdout"], ran["exit_code"]) == ("out\n", 3)
    missing = tool(server, "runs_get", run_id="nosuchrun")
    assert (missing["ok"], missing["error"]) == (False, "not_found")
    wrong = tool(server, "shell", command="true", nosuch=1)
    assert (wrong["error"], "nosuch" in wrong["message"]) == ("invalid_argument", True)
    wrong = tool(server, "shell", command=5)
    assert (wrong["error"], "command" in wrong["message"]) == ("invalid_argument", True)
    live = tool(server, "shell", action="spawn", command="exec sleep 1000")["run_id"]
    late = tool(server, "runs_wait", run_ids=[live], timeout_ms=20)
    assert (late["ok"], late["error"]) == (False, "timeout")
    tool(server, "runs_kill", run_id=live)


@pytest.mark.requirement("0.10", "6.4")
def test_the_servers_cwd_and_environment_are_the_callers(house: Home, tmp_path: Path) -> None:
    with McpLines(house, env={"FROM_THE_AGENT": "yes"}, cwd=tmp_path) as server:
        assert tool(server, "shell", command="pwd; echo $FROM_THE_AGENT")["stdout"] == f"{tmp_path}\nyes\n"


@pytest.mark.requirement("6.4", "9.mcp")
def test_cancelling_a_wait_leaves_the_run_alone(server: McpLines, http: Http) -> None:
    run_id = http.spawn("read x; echo $x", stdin="open")
    waiting = server.ask("tools/call", {"name": "runs_wait", "arguments": {"run_ids": [run_id], "timeout_ms": 40_000}})
    server.say("notifications/cancelled", {"requestId": waiting, "reason": "enough"})
    assert tool(server, "runs_get", run_id=run_id)["status"] == "running"
    http.ok("runs.write", {"run_id": run_id, "text": "x\n"})
    assert http.finish(run_id)["status"] == "completed"


@pytest.mark.requirement("6.4", "9.mcp")
def test_cancelling_a_one_shot_kills_it(server: McpLines, http: Http, tmp_path: Path) -> None:
    command = f": >'{tmp_path}/up'; exec sleep 1000"
    waiting = server.ask("tools/call", {"name": "shell", "arguments": {"command": command, "session_id": "mcp-cut"}})
    until(lambda: (tmp_path / "up").exists(), "the command to run")
    server.say("notifications/cancelled", {"requestId": waiting, "reason": "enough"})
    run_id = http.ok("runs.list", {"session_id": "mcp-cut"})["runs"][0]["run_id"]
    assert http.finish(run_id)["status"] == "killed"
    assert tool(server, "shell", command="echo on")["stdout"] == "on\n"


@pytest.mark.requirement("6.4", "9.mcp")
def test_a_wait_tells_its_progress(server: McpLines, http: Http) -> None:
    run_id = http.spawn("exec sleep 1000")
    params = {"name": "runs_wait", "arguments": {"run_ids": [run_id], "timeout_ms": 11_500}}
    begun = time.monotonic()
    asked = server.ask("tools/call", {**params, "_meta": {"progressToken": "p1"}})
    answer = told_by(server.answer(asked))
    assert answer["error"] == "timeout"
    assert time.monotonic() - begun > 11
    told = [note["params"] for note in server.notes if note["method"] == "notifications/progress"]
    mine = [params["progress"] for params in told if params["progressToken"] == "p1"]
    assert len(mine) >= 2
    assert mine == sorted(set(mine))
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("6.4")
@pytest.mark.timeout(150)
def test_what_takes_longer_than_a_client_waits_answers_before(server: McpLines, http: Http) -> None:
    live = http.spawn("exec sleep 1000")
    begun = time.monotonic()
    wait = server.ask("tools/call", {"name": "runs_wait", "arguments": {"run_ids": [live], "timeout_ms": 600_000}})
    oneshot = server.ask("tools/call", {"name": "shell", "arguments": {"command": "echo up; exec sleep 1000"}})
    talk = {"conversation_id": "mcp-long", "cmd": "echo up; sleep 1000", "timeout_ms": 600_000}
    block = server.ask("tools/call", {"name": "pty_run", "arguments": talk})
    waited = told_by(server.answer(wait, 90))
    ran = told_by(server.answer(oneshot, 90))
    blocked = told_by(server.answer(block, 90))
    assert 30 < time.monotonic() - begun < 60
    assert (waited["error"], live in waited["from"]) == ("timeout", True)
    # The run goes on, and the answer says what there is and where to go on.
    assert http.facts(ran["run_id"])["status"] == "running"
    assert "up\n" in json.dumps(ran).replace("\\n", "\n"), ran
    assert (blocked["output"], blocked["status"]) == ("up\n", "running")
    for run_id in (live, ran["run_id"]):
        http.ok("runs.kill", {"run_id": run_id})
    http.ok("pty.close", {"conversation_id": "mcp-long"})


@pytest.mark.requirement("6.4")
def test_logs_are_resources(server: McpLines) -> None:
    ran = tool(server, "shell", command="echo a resource")
    templates = server.call("resources/templates/list")["resourceTemplates"]
    assert templates
    logs = next(each["uriTemplate"] for each in templates if "run_id" in each["uriTemplate"])
    uri = logs.replace("{run_id}", ran["run_id"]).replace("{stream}", "stdout")
    uri = re.sub(r"\{[?&][^}]*\}", "", uri)
    contents = server.call("resources/read", {"uri": uri})["contents"]
    assert "a resource\n" in contents[0]["text"]
    with pytest.raises(McpError):
        server.call("resources/read", {"uri": uri.replace(ran["run_id"], "nosuchrun")})


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("line", [b"{", b"[]", b"5", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[" * 100_000, b""])
def test_a_bad_line_ends_nothing(house: Home, line: bytes) -> None:
    with McpLines(house) as server:
        server.write(line)
        assert tool(server, "shell", command="echo on")["stdout"] == "on\n"


@pytest.mark.requirement("6.4")
def test_the_end_of_input_ends_the_server_and_no_run(house: Home, http: Http) -> None:
    server = McpLines(house)
    run_id = tool(server, "shell", action="spawn", command="read x; echo $x", stdin="open")["run_id"]
    server.ask("tools/call", {"name": "runs_wait", "arguments": {"run_ids": [run_id]}})
    server.close()
    assert server.process.returncode == 0
    http.ok("runs.write", {"run_id": run_id, "text": "x\n"})
    assert http.finish(run_id)["status"] == "completed"


@pytest.mark.requirement("6.2", "6.4")
def test_it_starts_a_daemon_and_outlives_it(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon between two calls."""
    home = new_home()
    with McpLines(home) as server:
        run_id = tool(server, "shell", action="spawn", command="read x; echo $x", stdin="open")["run_id"]
        home.kill_daemon()
        assert tool(server, "shell", action="poll", run_id=run_id)["status"] == "running"
