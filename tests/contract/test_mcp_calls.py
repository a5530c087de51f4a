"""Operations as MCP tools over stdio: which, by which names, from where, and what they answer (6.4, 0.2, 0.10, 2.3)."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .fifos import Gate
from .home import Answer, Home, until
from .mcp import Mcp, answer_in
from .surface import Http, Surface


@pytest.fixture
def mcp(surfaces: dict[str, Surface]) -> Mcp:
    """The process that the surface tests use too: all tools."""
    found = surfaces["mcp"]
    assert isinstance(found, Mcp)
    return found


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
def test_without_words_a_client_gets_the_agents_tools(open_mcp: Callable[..., Mcp]) -> None:
    mcp = open_mcp("--tools", "agent")
    listed = [tool["name"] for tool in mcp.request("tools/list", {})["tools"]]
    assert "shell" in listed
    assert len(listed) <= 12
    # What is not chosen can't be called, by neither name.
    for name in ("daemon_stop", "daemon.stop", "backlog_take", "nope", ""):
        error = mcp.refusal("tools/call", {"name": name, "arguments": {}})
        assert error["code"] == -32602
        assert "shell" in error["message"]
    assert mcp.ok("shell", {"command": "echo here"})["stdout"] == "here\n"


@pytest.mark.requirement("6.4")
def test_the_default_is_agent(house: Home, open_mcp: Callable[..., Mcp]) -> None:
    named = open_mcp("--tools", "agent").request("tools/list", {})
    process = house.popen("mcp", stdin=-1)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
    process.stdin.flush()
    process.stdout.readline()
    assert json.loads(process.stdout.readline())["result"]["tools"] == named["tools"]
    process.stdin.close()
    assert process.wait(20) == 0


@pytest.mark.requirement("6.4")
def test_several_sets(open_mcp: Callable[..., Mcp]) -> None:
    listed = open_mcp("--tools", "shell,backlog").request("tools/list", {})["tools"]
    assert [tool["name"] for tool in listed] == ["shell", "backlog_take", "backlog_ack"]


@pytest.mark.requirement("6.4")
def test_an_unknown_set_is_said_at_once(house: Home) -> None:
    done = house.limpet("mcp", "--tools", "agnet")
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"did you mean agent" in done.stderr


@pytest.mark.requirement("6.4", "0.2")
def test_both_names_lead_to_a_tool(mcp: Mcp) -> None:
    run_id = mcp.spawn("echo a")
    mcp.finish(run_id)
    dotted, other = ({"name": name, "arguments": {"run_id": run_id}} for name in ("runs.read", "runs_read"))
    assert mcp.request("tools/call", dotted) == mcp.request("tools/call", other)


@pytest.mark.requirement("6.4", "9.mcp", "0.3")
def test_a_failure_is_an_error_with_the_whole_object(mcp: Mcp, http: Http) -> None:
    for op, params in (
        ("runs.get", {"run_id": "none"}),
        ("shell", {"command": "true", "nope": 1}),
        ("shell", {"command": 5}),
        ("shell", {"action": "poll"}),
        ("runs.wait", {}),
        ("runs.wait", {"run_ids": ["x"], "timeout_ms": "1"}),
        ("runs.wait", {"run_ids": ["x"], "timeout_ms": 1.5}),
        ("pty.exec_block", {"conversation_id": "no/way", "cmd": "true"}),
    ):
        result = mcp.request("tools/call", {"name": op, "arguments": params})
        assert result["isError"] is True
        answer = answer_in(result)
        over_http = http.call(op, params)
        dress = {"type", "title", "status", "detail"}
        assert answer == {name: value for name, value in over_http.items() if name not in dress}


@pytest.mark.requirement("6.4", "9.mcp")
def test_a_timeout_is_no_error(mcp: Mcp, gate: Gate) -> None:
    run_id = mcp.spawn(gate.wait + "echo done")
    asked = {"run_ids": [run_id], "timeout_ms": 50}
    result = mcp.request("tools/call", {"name": "runs_wait", "arguments": asked})
    assert result["isError"] is False
    answer = answer_in(result)
    assert (answer["ok"], answer["error"]) == (False, "timeout")
    gate.open()
    again = mcp.ok("runs.wait", {"run_ids": [run_id], "from": answer["from"]})
    assert again["run"]["status"] == "completed"


@pytest.mark.requirement("0.10")
def test_runs_get_the_callers_cwd_and_environment(open_mcp: Callable[..., Mcp], house: Home) -> None:
    mcp = open_mcp("--tools", "agent", env={"ONLY_HERE": "two\nlines ≤", "MY_TOKEN": "tok-77aa"})
    said = mcp.ok("shell", {"command": 'pwd; echo "$ONLY_HERE"; echo "$MY_TOKEN"'})["stdout"]
    assert said == f"{house.work}\ntwo\nlines ≤\ntok-77aa\n"
    said = mcp.ok("pty_run", {"conversation_id": "of-mcp", "cmd": 'pwd; echo "$ONLY_HERE"'})["output"]
    assert said == f"{house.work}\ntwo\nlines ≤\n"
    assert mcp.ok("shell", {"command": "pwd", "cwd": "/"})["stdout"] == "/\n"
    assert mcp.ok("shell", {"command": "echo $ONLY_HERE", "env": {"ONLY_HERE": "mine"}})["stdout"] == "mine\n"


@pytest.mark.requirement("2.3")
def test_context_comes_from_the_request_or_from_its_meta(mcp: Mcp) -> None:
    told = {"runId": "r1", "toolCallId": "t1", "sessionKey": "s1"}
    run_id = mcp.ok("shell", {"command": "true", "context": told})["run_id"]
    assert mcp.facts(run_id)["context"] == told
    meta = {"limpet/context": {"toolCallId": "t2"}}
    call: Answer = {"name": "shell", "arguments": {"command": "true"}, "_meta": meta}
    run_id = answer_in(mcp.request("tools/call", call))["run_id"]
    assert mcp.facts(run_id)["context"] == {"toolCallId": "t2"}
    # What the request says itself is what counts.
    call["arguments"] = {"command": "true", "context": told}
    run_id = answer_in(mcp.request("tools/call", call))["run_id"]
    assert mcp.facts(run_id)["context"] == told


@pytest.mark.requirement("0.9", "0.2")
def test_a_key_means_the_same_run_on_every_way_in(mcp: Mcp, http: Http) -> None:
    request = {"command": "echo once", "key": "mcp-and-http"}
    first = mcp.ok("shell", request)
    assert mcp.ok("shell", request) == first
    assert http.ok("shell", request) == first
    assert mcp.refused("shell", {**request, "command": "echo twice"}, "conflict")


@pytest.mark.requirement("6.4", "0.7")
def test_what_a_command_says_is_bounded_and_what_is_left_out_can_be_read(mcp: Mcp) -> None:
    answer = mcp.ok("shell", {"command": "echo first; seq 1 400000; echo last; printf 'é%.0s' $(seq 20000) >&2"})
    assert len(json.dumps(answer, ensure_ascii=False).encode()) < 60_000
    assert answer["stdout"].startswith("first\n1\n2\n")
    assert answer["stdout"].endswith("400000\nlast\n")
    gap = answer["omitted"]["stdout"]
    assert (
        f"[... {gap['end'] - gap['start']} bytes left out: stdout from {gap['start']} to {gap['end']} ...]"
        in (answer["stdout"])
    )
    whole = "first\n" + "".join(f"{n}\n" for n in range(1, 400_001)) + "last\n"
    head, _, tail = answer["stdout"].partition("\n[... ")
    tail = tail.partition(" ...]\n")[2]
    assert (len(head), len(whole) - len(tail)) == (gap["start"], gap["end"])
    assert whole.startswith(head)
    assert whole.endswith(tail)
    read = mcp.ok("runs_read", {"run_id": answer["run_id"], "stream": "stdout", "offset": gap["start"]})
    assert whole[gap["start"] :].startswith(read["data"])
    assert read["next_offset"] == gap["start"] + len(read["data"])
    assert "\ufffd" not in answer["stderr"]
    assert set(answer["stderr"].partition("\n[... ")[0]) == {"é"}


@pytest.mark.requirement("6.4")
def test_an_answer_too_large_for_a_client(mcp: Mcp) -> None:
    """A command of a mebibyte is in every answer about its run."""
    words = "a" * 1_000_000
    answer = mcp.ok("shell", {"command": f": '{words}'; echo ran"})
    assert answer["stdout"] == "ran\n"
    facts = mcp.ok("runs.get", {"run_id": answer["run_id"]})
    assert facts["cut"] is True
    assert "characters left out" in facts["command"]
    assert len(json.dumps(facts)) < 600_000


@pytest.mark.requirement("6.4")
def test_logs_are_resources(mcp: Mcp, http: Http) -> None:
    run_id = mcp.ok("shell", {"command": "printf 'a\\377\\0b\\n'; echo wrong >&2"})["run_id"]
    uri = f"limpet://runs/{run_id}/stdout"
    listed = mcp.request("resources/list", {})
    assert uri in [each["uri"] for each in listed["resources"]]
    assert mcp.request("resources/templates/list", {})["resourceTemplates"][0]["uriTemplate"].startswith(
        "limpet://runs/"
    )
    [contents] = mcp.request("resources/read", {"uri": uri})["contents"]
    assert contents["text"] == "a\ufffd\0b\n"
    assert contents["_meta"]["limpet/total_bytes"] == 5
    [contents] = mcp.request("resources/read", {"uri": uri + "?encoding=base64&offset=1&max_bytes=2"})["contents"]
    assert base64.b64decode(contents["blob"]) == b"\xff\0"
    assert contents["_meta"]["limpet/next_offset"] == 3
    big = http.ok("shell", {"command": "seq 1 200000"})["run_id"]
    [contents] = mcp.request("resources/read", {"uri": f"limpet://runs/{big}/stdout"})["contents"]
    assert contents["text"].endswith("200000\n")
    assert contents["_meta"]["limpet/offset_bytes"] == contents["_meta"]["limpet/total_bytes"] - 256 * 1024
    # Older ones are a page away.
    for _ in range(60):
        http.spawn("true")
    first = mcp.request("resources/list", {})
    second = mcp.request("resources/list", {"cursor": first["nextCursor"]})
    assert {each["uri"] for each in first["resources"]}.isdisjoint(each["uri"] for each in second["resources"])


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize(
    "uri",
    [
        "limpet://runs/none/stdout",
        "limpet://runs/x/stdin",
        "limpet://runs/../stdout",
        "file:///etc/passwd",
        "limpet://runs/none/stdout?offset=-1",
        "limpet://runs/none/stdout?offset=" + "9" * 50,
        "limpet://runs/none/stdout?what=1",
        "x" * 100_000,
    ],
)
def test_a_resource_that_is_none(mcp: Mcp, uri: str) -> None:
    error = mcp.refusal("resources/read", {"uri": uri})
    assert error["code"] == -32602
    assert len(json.dumps(error)) < 4000


@pytest.mark.requirement("6.4")
def test_logs_go_with_the_tool_that_reads_them(open_mcp: Callable[..., Mcp]) -> None:
    mcp = open_mcp("--tools", "backlog")
    assert mcp.refusal("resources/list", {})["code"] == -32601


@pytest.mark.requirement("6.4", "6.1")
def test_the_daemon_is_started_at_the_first_call(new_home: Callable[..., Home]) -> None:
    home = new_home()
    mcp = Mcp(home, "--tools", "agent")
    assert len(mcp.request("tools/list", {})["tools"]) > 5
    assert not home.socket.exists()
    assert mcp.ok("shell", {"command": "echo up"})["stdout"] == "up\n"
    assert home.daemon_pid() > 0
    mcp.close()
    until(lambda: mcp.process.pid not in home.processes(), "limpet mcp to be gone")


@pytest.mark.requirement("6.3")
def test_what_it_costs_is_paid_by_it_alone(house: Home, mcp: Mcp) -> None:
    """Neither another command nor the daemon imports the SDK."""

    def has_sdk(pid: int) -> bool:
        return "pydantic_core" in Path(f"/proc/{pid}/maps").read_text()

    assert has_sdk(mcp.process.pid)
    assert not has_sdk(house.daemon_pid())
    done = house.limpet("ps", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert b"limpet.surfaces.cli" in done.stderr
    for name in (b"mcp_types", b"pydantic", b"limpet.surfaces.mcp"):
        assert name not in done.stderr
