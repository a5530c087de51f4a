"""The protocol itself: its revisions, the SDK's own client, the tasks extension, and garbage (6.4)."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters

from .fifos import Gate, Lifeline
from .home import LIMPET, Answer, Home
from .mcp import ENVELOPE, HANDSHAKES, Mcp, answer_in
from .surface import Http

TASKS = "io.modelcontextprotocol/tasks"


@pytest.fixture
def open_mcp(house: Home) -> Iterator[Callable[..., Mcp]]:
    """Starts processes of the test's own, on the shared home."""
    made: list[Mcp] = []

    def start(*args: str, **more: Any) -> Mcp:
        made.append(Mcp(house, *args, **more))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("version", [*HANDSHAKES, ENVELOPE])
def test_every_revision(open_mcp: Callable[..., Mcp], gate: Gate, version: str) -> None:
    mcp = open_mcp("--tools", "agent", version=version)
    if version == ENVELOPE:
        told = mcp.request("server/discover", {})
        assert version in told["supportedVersions"]
        assert TASKS in told["capabilities"]["extensions"]
    else:
        told = mcp.welcome
        assert told["protocolVersion"] == version
        assert told["serverInfo"]["name"] == "limpet"
    assert "tools" in told["capabilities"]
    assert "resources" in told["capabilities"]
    assert told["instructions"]
    tools = {tool["name"]: tool for tool in mcp.request("tools/list", {})["tools"]}
    assert tools["shell"]["inputSchema"]["properties"]["command"]["type"] == "string"
    ran = mcp.ok("shell", {"command": "echo hi; exit 2"})
    assert (ran["stdout"], ran["exit_code"]) == ("hi\n", 2)
    assert mcp.refused("runs.get" if version == "none" else "runs_read", {"run_id": "none"}, "not_found")
    assert mcp.refusal("tools/call", {"name": "nope", "arguments": {}})["code"] == -32602
    assert mcp.refusal("no/such/method", {})["code"] == -32601
    contents = mcp.request("resources/read", {"uri": f"limpet://runs/{ran['run_id']}/stdout"})["contents"]
    assert contents[0]["text"] == "hi\n"
    number, message = mcp.begin_call("shell", command=gate.wait + "echo done")
    mcp.progress(number)
    gate.open()
    assert mcp.ended(message)["stdout"] == "done\n"


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("mode", ["legacy", "auto", ENVELOPE])
def test_the_sdks_own_client(house: Home, mode: str) -> None:
    """It holds every answer against the tool's schema."""
    server = StdioServerParameters(command=LIMPET, args=["mcp", "--tools", "all"], env=house.env, cwd=house.work)

    async def talk() -> None:
        told: list[float] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            assert total is None
            assert message
            told.append(progress)

        async with Client(server, mode=mode) as client:
            assert client.protocol_version == (HANDSHAKES[-1] if mode == "legacy" else ENVELOPE)
            tools = (await client.list_tools()).tools
            assert len(tools) > 30
            ran = (await client.call_tool("shell", {"command": "echo out; echo err >&2; exit 3"})).structured_content
            assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("out\n", "err\n", 3)
            about = {"run_id": ran["run_id"]}
            calls: list[tuple[str, Answer]] = [
                ("shell", {"action": "spawn", "command": "true", "watch": [{"regex": "x", "event": "e"}]}),
                ("shell", {"action": "poll", **about}),
                ("shell", {"action": "log", **about}),
                ("shell", {"action": "kill", **about}),
                ("runs_get", about),
                ("runs_list", {}),
                ("runs_read", about),
                ("runs_search", {"query": "out"}),
                ("runs_verify", about),
                ("runs_prune", {"dry_run": True}),
                ("runs_kill", about),
                ("runs_wait", {"run_ids": [ran["run_id"]], "for": [{"regex": "out"}]}),
                ("runs_wait", {"run_ids": [ran["run_id"]], "for": [{"regex": "never"}], "timeout_ms": 10}),
                ("backlog_take", {"session_id": "sdk"}),
                ("pty_run", {"conversation_id": f"sdk-{mode}", "cmd": "echo x"}),
                ("pty_run", {"conversation_id": f"sdk-{mode}", "cmd": "cat", "timeout_ms": 100}),
                ("pty_status", {"conversation_id": f"sdk-{mode}"}),
                ("pty_wait_for", {"conversation_id": f"sdk-{mode}", "match": "x"}),
                ("pty_wait_for", {"conversation_id": f"sdk-{mode}", "match": "never", "timeout_ms": 10}),
                ("pty_send", {"conversation_id": f"sdk-{mode}", "data": "y\n"}),
                ("pty_read_spool", {"conversation_id": f"sdk-{mode}"}),
                ("pty_end_session", {"conversation_id": f"sdk-{mode}"}),
                ("pty_wait_prompt", {"conversation_id": f"sdk-{mode}"}),
                ("blocks_since", {"conversation_id": f"sdk-{mode}"}),
                ("blocks_search", {"conversation_id": f"sdk-{mode}", "query": "x"}),
                ("pty_close", {"conversation_id": f"sdk-{mode}"}),
                ("daemon_status", {}),
                ("daemon_doctor", {}),
            ]
            for name, params in calls:
                result = await client.call_tool(name, params)
                assert not result.is_error, (name, result.structured_content)
            await client.call_tool("shell", {"command": "sleep 5"}, progress_callback=hear)
            with pytest.raises(MCPError, match="no tool"):
                await client.call_tool("shel", {})
            uri = f"limpet://runs/{ran['run_id']}/stderr"
            contents: Any = (await client.read_resource(uri)).contents[0]
            assert contents.text == "err\n"
        assert told

    asyncio.run(talk())


@pytest.mark.requirement("6.4")
def test_long_commands_become_tasks_for_clients_that_declare_them(
    open_mcp: Callable[..., Mcp], http: Http, gate: Gate, lifeline: Lifeline
) -> None:
    declared: Answer = {"extensions": {TASKS: {}}}
    mcp = open_mcp(version=ENVELOPE, capabilities=declared)
    # What ends soon is no task.
    assert mcp.ok("shell", {"command": "echo soon"})["stdout"] == "soon\n"
    call = {"name": "shell", "arguments": {"command": f"echo a; {gate.wait} echo b; echo c >&2; exit 3"}}
    made = mcp.request("tools/call", call)
    assert (made["resultType"], made["status"]) == ("task", "working")
    task = {"taskId": made["taskId"]}
    told = mcp.request("tasks/get", task)
    assert (told["resultType"], told["status"], told["ttlMs"]) == ("complete", "working", None)
    assert told["createdAt"] <= told["lastUpdatedAt"]
    # Another process knows it: its state is the run's.
    other = open_mcp("--tools", "shell", version=ENVELOPE, capabilities=declared)
    assert other.request("tasks/get", task)["status"] == "working"
    assert other.request("tasks/update", {**task, "inputResponses": {}})["resultType"] == "complete"
    gate.open()
    http.finish(made["taskId"])
    told = other.request("tasks/get", task)
    assert told["status"] == "completed"
    answer = answer_in(told["result"])
    assert (answer["stdout"], answer["stderr"], answer["exit_code"]) == ("a\nb\n", "c\n", 3)
    expected = http.facts(made["taskId"])
    assert (answer["status"], answer["run_id"]) == (expected["status"], expected["run_id"])
    # Cancelled, it is killed with all of it.
    held = {"name": "shell", "arguments": {"command": lifeline.hold + "sleep 1000"}}
    task = {"taskId": mcp.request("tools/call", held)["taskId"]}
    assert mcp.request("tasks/cancel", task)["resultType"] == "complete"
    assert lifeline.gone(30)
    http.finish(task["taskId"])
    assert mcp.request("tasks/get", task)["status"] == "cancelled"
    assert mcp.request("tasks/cancel", task)["resultType"] == "complete"


@pytest.mark.requirement("6.4")
def test_tasks_are_for_those_who_declare_them(open_mcp: Callable[..., Mcp], http: Http) -> None:
    run_id = http.ok("shell", {"command": "true"})["run_id"]
    undeclared = open_mcp(version=ENVELOPE)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        error = undeclared.refusal(method, {"taskId": run_id})
        assert error["code"] == -32021
        assert error["data"]["requiredCapabilities"]["extensions"] == {TASKS: {}}
    declared: Answer = {"extensions": {TASKS: {}}}
    mcp = open_mcp(version=ENVELOPE, capabilities=declared)
    for task_id in ("none", "", "x" * 5000, "../x"):
        assert mcp.refusal("tasks/get", {"taskId": task_id})["code"] == -32602
    assert mcp.refusal("tasks/get", {})["code"] == -32602
    http.ok("pty.open", {"conversation_id": "no-task"})
    conversation = http.ok("pty.status", {"conversation_id": "no-task"})["run_id"]
    assert mcp.refusal("tasks/cancel", {"taskId": conversation})["code"] == -32602
    http.ok("pty.close", {"conversation_id": "no-task"})
    # Where no tool can make one there are none.
    assert open_mcp("--tools", "runs", version=ENVELOPE, capabilities=declared).refusal(
        "tasks/get", {"taskId": run_id}
    )["code"] == (-32601)


GARBAGE: dict[str, tuple[bytes, int | None, int | str | None]] = {
    "text": (b"hello", -32700, None),
    "half a message": (b'{"jsonrpc": "2.0", "id": 7, "meth', -32700, None),
    "not UTF-8": (b'{"jsonrpc": "2.0", "id": "\xff"}', None, None),
    "a list": (b"[]", -32600, None),
    "a number": (b"7", -32600, None),
    "nothing": (b"null", -32600, None),
    "no version": (b'{"id": 5, "method": "ping"}', -32600, 5),
    "a method that is none": (b'{"jsonrpc": "2.0", "id": "seven", "method": 7}', -32600, "seven"),
    "an id that is none": (b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}', -32600, None),
    "a deep list": (b"[" * 200_000, -32700, None),
    "NULs": (b"\0" * 1000, -32700, None),
    "a great number": (b'{"jsonrpc": "2.0", "id": 1' + b"0" * 10_000 + b', "method": 1}', None, None),
}


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("case", list(GARBAGE))
def test_garbage_is_answered_as_such(open_mcp: Callable[..., Mcp], case: str) -> None:
    line, code, number = GARBAGE[case]
    mcp = open_mcp("--tools", "shell")
    mcp.write(b"")
    mcp.write(b"  \t\r")
    if number is not None:
        answer = mcp.expect(number)
        mcp.write(line)
        assert answer.result(60)["error"]["code"] == code
    else:
        mcp.write(line)
        complaint = mcp.complaint()
        assert complaint["id"] is None
        assert code is None or complaint["error"]["code"] == code
        assert len(json.dumps(complaint)) < 500
    assert mcp.ok("shell", {"command": "echo on"})["stdout"] == "on\n"


@pytest.mark.requirement("6.4")
def test_a_line_without_end_is_dropped_not_kept(open_mcp: Callable[..., Mcp]) -> None:
    mcp = open_mcp("--tools", "shell")
    assert mcp.process.stdin is not None
    for _ in range(80):
        mcp.process.stdin.write(b"x" * (1 << 20))
    mcp.write(b"")
    assert mcp.complaint()["error"]["code"] == -32600
    assert mcp.ok("shell", {"command": "echo on"})["stdout"] == "on\n"


@pytest.mark.requirement("6.4")
def test_requests_that_do_not_fit_the_protocol(open_mcp: Callable[..., Mcp]) -> None:
    mcp = open_mcp("--tools", "shell")
    wrong: list[Answer] = [{}, {"name": 5}, {"name": "shell", "arguments": []}, {"name": "shell", "arguments": "x"}]
    for params in wrong:
        assert mcp.refusal("tools/call", params)["code"] == -32602
    # Arguments that are no request of the tool are the tool's to refuse.
    mcp.refused("shell", {"command": ["a"]}, "invalid_argument")
    mcp.refused("shell", {"key": 5, "command": "true"}, "invalid_argument")
    mcp.refused("shell", {"command": "true", "context": {"runId": 5}}, "invalid_argument")
    mcp.refused("shell", {"action": "nope"}, "invalid_argument")
    mcp.refused("shell", {"action": ["spawn"], "command": "true"}, "invalid_argument")
    # Notifications of what nobody asked for change nothing.
    mcp.send({"method": "notifications/cancelled", "params": {"requestId": 10_000}})
    mcp.send({"method": "notifications/cancelled", "params": {"requestId": None}})
    mcp.send({"method": "notifications/nothing"})
    assert mcp.ok("shell", {"command": "echo on"})["stdout"] == "on\n"


@pytest.mark.requirement("6.4")
def test_nobody_reads_the_answers(house: Home) -> None:
    """Injector: the client closes its end of stdout and keeps stdin open."""
    process = house.popen("mcp", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n' * 3)
    process.stdin.flush()
    assert process.wait(20) == 0
