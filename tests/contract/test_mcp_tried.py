"""Twenty tasks as a model would do them that knows the default tools' list and nothing else: each call works (6.4)."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .home import Answer, Home
from .mcp import Mcp

Told = list[Answer]
Arguments = Answer | Callable[[Told], Answer]


@dataclass(frozen=True)
class Task:
    """What was asked for, the calls that the list suggests, and what the last answer must say."""

    asked: str
    calls: tuple[tuple[str, Arguments], ...]
    done: Callable[[Answer], bool]


def run_of(told: Told, place: int = 0) -> str:
    run_id = told[place]["run_id"]
    assert isinstance(run_id, str)
    return run_id


def talk(name: str, **more: Any) -> Answer:
    return {"conversation_id": name, **more}


SERVER = """python3 -u -c "
import socket
listener = socket.create_server(('127.0.0.1', 0))
print('port', listener.getsockname()[1])
listener.accept()
" """

TASKS = (
    Task(
        "run the tests and say whether they pass",
        (("shell", {"command": "echo 3 passed"}),),
        lambda a: a["exit_code"] == 0,
    ),
    Task(
        "say why the build fails",
        (("shell", {"command": "echo compiling; echo 'main.c:3: error' >&2; exit 2"}),),
        lambda a: a["exit_code"] == 2 and "main.c:3" in a["stderr"],
    ),
    Task(
        "run it in another folder, with DEBUG set",
        (("shell", {"command": "pwd; echo $DEBUG", "cwd": "/tmp", "env": {"DEBUG": "1"}}),),
        lambda a: a["stdout"] == "/tmp\n1\n",
    ),
    Task(
        "start the dev server and wait until it is up",
        (
            ("shell", {"action": "spawn", "command": SERVER}),
            ("runs_wait", lambda told: {"run_ids": [run_of(told)], "for": [{"regex": "port [0-9]+\n"}]}),
        ),
        lambda a: a["ok"] and a["hit"]["match"].startswith("port "),
    ),
    Task(
        "wait for whichever comes first: it listens, or it fails",
        (
            ("shell", {"action": "spawn", "command": "echo no config >&2; exit 1"}),
            (
                "runs_wait",
                lambda told: {"run_ids": [run_of(told)], "for": [{"regex": "listening"}, {"exit": True}]},
            ),
        ),
        lambda a: a["met"] == {"exit": True} and a["run"]["exit_code"] == 1,
    ),
    Task(
        "show the last ten lines of the server's log",
        (
            ("shell", {"action": "spawn", "command": "seq 100; exec sleep 1000"}),
            ("runs_wait", lambda told: {"run_ids": [run_of(told)], "for": [{"regex": "100\n"}]}),
            ("runs_read", lambda told: {"run_id": run_of(told), "last_lines": 10}),
        ),
        lambda a: a["data"].splitlines() == [str(n) for n in range(91, 101)],
    ),
    Task(
        "stop the server",
        (
            ("shell", {"action": "spawn", "command": "sleep 1000 & sleep 1000"}),
            ("shell", lambda told: {"action": "kill", "run_id": run_of(told)}),
            ("runs_wait", lambda told: {"run_ids": [run_of(told)]}),
        ),
        lambda a: a["run"]["status"] == "killed",
    ),
    Task(
        "what is running right now?",
        (("shell", {"action": "spawn", "command": "sleep 1000"}), ("runs_list", {"status": "running"})),
        lambda a: any(run["command"] == "sleep 1000" for run in a["runs"]),
    ),
    Task(
        "follow a long build, reading what is new each time",
        (
            ("shell", {"action": "spawn", "command": "echo one; until [ -e built ]; do sleep 0.05; done; echo two"}),
            ("runs_wait", lambda told: {"run_ids": [run_of(told)], "for": [{"regex": "one\n"}]}),
            ("shell", lambda told: {"action": "log", "run_id": run_of(told)}),
            ("shell", {"command": "touch built"}),
            ("runs_wait", lambda told: {"run_ids": [run_of(told)]}),
            ("shell", lambda told: {"action": "log", "run_id": run_of(told), "since_seq": told[2]["next_seq"]}),
        ),
        lambda a: "".join(item.get("text", "") for item in a["items"]) == "two\n",
    ),
    Task(
        "which command printed 'ENOSPC'?",
        (("shell", {"command": "echo write failed: ENOSPC-7"}), ("runs_search", {"query": "ENOSPC-7"})),
        lambda a: a["hits"][0]["line"] == "write failed: ENOSPC-7",
    ),
    Task(
        "read the middle that was left out of a long output",
        (
            ("shell", {"command": "seq 100000"}),
            (
                "runs_read",
                lambda told: {
                    "run_id": run_of(told),
                    "offset": told[0]["omitted"]["stdout"]["start"],
                    "max_bytes": 100,
                },
            ),
        ),
        lambda a: (
            a["data"].split() == [str(n) for n in range(int(a["data"].split()[0]), int(a["data"].split()[-1]) + 1)]
            or len(a["data"]) == 100
        ),
    ),
    Task(
        "activate the environment, then use it",
        (
            ("pty_run", talk("main", cmd="cd /tmp && export STAGE=dev && greet() { echo hello $1; }")),
            ("pty_run", talk("main", cmd="pwd; greet $STAGE")),
        ),
        lambda a: (a["output"], a["exit_code"]) == ("/tmp\nhello dev\n", 0),
    ),
    Task(
        "compute something in a Python prompt",
        (
            ("pty_exec_interactive", talk("py", cmd="python3 -q")),
            ("pty_wait_for", lambda told: talk("py", match=">>> ", from_cursor=told[0]["resume_cursor"])),
            ("pty_send", talk("py", data="print(6 * 7)\n")),
            ("pty_wait_for", lambda told: talk("py", match="42\n", from_cursor=told[1]["resume_cursor"])),
        ),
        lambda a: a["matched"],
    ),
    Task(
        "answer the installer's question",
        (
            ("pty_exec_interactive", talk("installer", cmd="read -p 'Continue? [y/n] ' x; echo got $x")),
            ("pty_wait_for", lambda told: talk("installer", match="[y/n] ", from_cursor=told[0]["resume_cursor"])),
            ("pty_send", talk("installer", data="y\n")),
            (
                "pty_wait_for",
                lambda told: talk("installer", match="", match_type="prompt", from_cursor=told[1]["resume_cursor"]),
            ),
        ),
        lambda a: a["extra"]["exit_code"] == 0,
    ),
    Task(
        "read all that the program in the terminal said",
        (
            ("pty_run", talk("said", cmd="printf '\\033[31mred\\033[0m\\n'")),
            ("pty_read_spool", talk("said", view="plain")),
        ),
        lambda a: "red\n" in a["data"] and "\x1b" not in a["data"],
    ),
    Task(
        "a command in the terminal hangs: get the prompt back and go on",
        (
            ("pty_run", talk("stuck", cmd="sleep 1000", timeout_ms=300)),
            ("pty_end_session", talk("stuck")),
            ("pty_run", talk("stuck", cmd="echo back")),
        ),
        lambda a: a["output"] == "back\n",
    ),
    Task(
        "what does the screen show?",
        (
            ("pty_exec_interactive", talk("screen", cmd="printf '\\033[2J\\033[3;5Hmenu'; read x")),
            ("pty_wait_for", lambda told: talk("screen", match="menu", from_cursor=told[0]["resume_cursor"])),
            ("pty_snapshot", talk("screen")),
        ),
        lambda a: "    menu" in json.dumps(a),
    ),
    Task(
        "sort these lines",
        (("shell", {"command": "sort", "stdin": "b\na\n"}),),
        lambda a: a["stdout"] == "a\nb\n",
    ),
    Task(
        "give up on it after a second",
        (("shell", {"command": "sleep 1000", "timeout_secs": 1}),),
        lambda a: a["timed_out"] is True,
    ),
    Task(
        "quit the full-screen program",
        (
            ("shell", {"action": "spawn", "command": 'read -rsn1 key; echo "key $key"', "pty": True}),
            ("shell", lambda told: {"action": "send_keys", "run_id": run_of(told), "keys": ["q"]}),
            ("runs_wait", lambda told: {"run_ids": [run_of(told)], "for": [{"regex": "key q"}]}),
        ),
        lambda a: a["hit"]["match"] == "key q",
    ),
)


@pytest.fixture(scope="module")
def mcp(house: Home) -> Iterator[Mcp]:
    mcp = Mcp(house, "--tools", "agent")
    yield mcp
    mcp.close()


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.asked)
def test_a_task_is_done_as_the_list_suggests(mcp: Mcp, task: Task) -> None:
    told: Told = []
    for name, arguments in task.calls:
        told.append(mcp.call(name, arguments(told) if callable(arguments) else arguments))
        assert told[-1]["ok"] or told[-1]["error"] == "timeout", (name, told[-1])
        assert len(json.dumps(told[-1])) < 60_000
    assert task.done(told[-1]), told[-1]
    for each in told:
        if each.get("status") == "running" and "run_id" in each:
            mcp.call("shell", {"action": "kill", "run_id": each["run_id"]})


def test_there_are_twenty() -> None:
    assert len(TASKS) == 20
