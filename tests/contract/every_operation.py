"""Every operation, called well and called wrong: the one script that each way in is taken through."""

from collections.abc import Callable, Iterator
from typing import Any

from .home import Answer, until
from .likeness import Likeness
from .surface import Surface

WITHIN_MS = 60_000
# Of the whole home: what is there differs from machine to machine and from moment to moment.
ABOUT_THE_HOUSE = frozenset({"daemon.status", "daemon.doctor"})


class Tale:
    """What one surface answered to the script, call by call."""

    def __init__(self, surface: Surface, likeness: Likeness) -> None:
        self._surface = surface
        self._likeness = likeness
        self.told: list[tuple[str, Any]] = []
        self.well: set[str] = set()
        self.codes: set[tuple[str, str]] = set()

    def call(self, op: str, **params: Any) -> Answer:
        answer = self._surface.call(op, params)
        plain = self._likeness.of(answer)
        if op in ABOUT_THE_HOUSE and answer["ok"]:
            plain = sorted(plain)
        self.told.append((f"{len(self.told)} {op} {self._likeness.of(params)}"[:120], plain))
        if answer["ok"]:
            self.well.add(op)
        else:
            self.codes.add((op, answer["error"]))
        return answer

    def unsaid(self, op: str, done: Callable[[Answer], bool], **params: Any) -> None:
        """Called until it is done: what each answer says hangs on the moment, and is not compared."""
        until(lambda: done(self._surface.ok(op, params)), f"{op} to be done")
        self.well.add(op)

    def ok(self, op: str, **params: Any) -> Answer:
        answer = self.call(op, **params)
        assert answer["ok"] is True, (self._surface.name, op, params, answer)
        return answer

    def refused(self, code: str, op: str, **params: Any) -> Answer:
        answer = self.call(op, **params)
        assert answer["ok"] is False, (self._surface.name, op, params, answer)
        assert answer["error"] == code, (self._surface.name, op, params, answer)
        return answer


def tell(tale: Tale) -> None:
    """All of it; each part stands alone."""
    for part in (_shell, _background, _reading, _waiting, _input, _backlog, _events, _blocks, _talking, _ends, _house):
        part(tale)


def _shell(tale: Tale) -> None:
    tale.ok("shell", command="echo out; exit 3")
    tale.ok("shell", command="printf '\\303\\251\\377\\0' >&2")
    tale.ok("shell", command="cat", stdin="typed", labels=["a", "b"], context={"runId": "r", "toolCallId": "t"})
    tale.ok("shell", command="kill -9 $$")
    tale.ok("shell", command="true", cwd="/no/such/folder")
    tale.ok("shell", command="exec sleep 1000", timeout_secs=0.2)
    tale.ok("shell", command="echo $A", env={"A": "b"}, key="one")
    tale.ok("shell", command="echo $A", env={"A": "b"}, key="one")
    tale.refused("conflict", "shell", command="echo $A", env={"A": "c"}, key="one")
    for wrong in ({}, {"command": 5}, {"command": "true", "nosuch": 1}, {"command": "true", "timeout_secs": "5"}):
        tale.refused("invalid_argument", "shell", **wrong)
    tale.refused("invalid_argument", "shell", command="true", session_id="../x")
    tale.refused("invalid_argument", "shell", action="spawn", command="true", watch=[{"regex": "(a", "event": "e"}])
    tale.refused("not_found", "shell", action="poll", run_id="nosuchrun")


def _background(tale: Tale) -> None:
    run_id = tale.ok("shell", action="spawn", command="echo up; exec sleep 1000", session_id="s1", cwd="/")["run_id"]
    tale.ok("runs.wait", run_ids=[run_id], **{"for": [{"regex": "up\n"}]}, timeout_ms=WITHIN_MS)
    tale.ok("shell", action="poll", run_id=run_id)
    queued = tale.ok("shell", action="spawn", command="echo second", session_id="s1", cwd="/")["run_id"]
    tale.ok("shell", action="poll", run_id=queued)
    tale.ok("shell", action="log", run_id=run_id, stream="stdout", limit=5)
    tale.refused("invalid_argument", "shell", action="log", run_id=run_id, since_seq=1 << 40)
    tale.refused("conflict", "shell", action="send_keys", run_id=run_id, keys=["Enter"])
    tale.ok("runs.signal", run_id=run_id, signal="SIGCONT")
    tale.refused("invalid_argument", "runs.signal", run_id=run_id, signal="CONT!")
    tale.refused("not_found", "runs.signal", run_id="nosuchrun", signal="SIGCONT")
    tale.ok("shell", action="kill", run_id=queued)
    tale.unsaid("runs.kill", lambda answer: answer["status"] == "killed", run_id=run_id)
    tale.ok("runs.wait", run_ids=[run_id], timeout_ms=WITHIN_MS)
    tale.ok("runs.kill", run_id=run_id)
    tale.refused("not_found", "runs.kill", run_id="nosuchrun")
    tale.refused("invalid_argument", "runs.kill", run_id=run_id, sig="SIGTERM")
    tale.ok("shell", action="kill", run_id=run_id)
    tale.ok("shell", action="poll", run_id=run_id)


def _reading(tale: Tale) -> None:
    run_id = tale.ok("shell", command="printf 'a\\033[1mb\\n\\303\\251\\n'", session_id="s2", cwd="/")["run_id"]
    tale.ok("runs.get", run_id=run_id)
    tale.refused("not_found", "runs.get", run_id="nosuchrun")
    tale.refused("invalid_argument", "runs.get", run_id=5)
    for asked in ({"encoding": "base64"}, {"view": "plain"}, {"offset": 8, "max_bytes": 1}, {"last_lines": 1}):
        tale.ok("runs.read", run_id=run_id, **asked)
    tale.refused("not_found", "runs.read", run_id="nosuchrun")
    tale.refused("invalid_argument", "runs.read", run_id=run_id, offset=1000)
    tale.refused("invalid_argument", "runs.read", run_id=run_id, offset="0")
    tale.ok("runs.list", session_id="s2")
    tale.ok("runs.list", status="failed", text="no such command text")
    tale.refused("invalid_argument", "runs.list", limit=0)
    tale.ok("runs.search", query="b", session_id="s2")
    tale.ok("runs.search", regex="[a-z]\\n", run_id=run_id)
    tale.refused("invalid_argument", "runs.search", regex="(a")
    tale.refused("not_found", "runs.search", query="a", run_id="nosuchrun")


def _waiting(tale: Tale) -> None:
    run_id = tale.ok("shell", action="spawn", command="printf 'port 80'; read x", stdin="open", cwd="/")["run_id"]
    waited = tale.ok("runs.wait", run_ids=[run_id], **{"for": [{"regex": "port ([0-9]+)"}]}, timeout_ms=WITHIN_MS)
    tale.refused("timeout", "runs.wait", run_ids=[run_id], **{"for": [{"exit": True}]}, timeout_ms=30)
    tale.refused("invalid_argument", "runs.wait", run_ids=[run_id], **{"for": [{"nosuch": True}]})
    tale.refused("not_found", "runs.wait", run_ids=["nosuchrun"])
    tale.ok("runs.write", run_id=run_id, text="x\n", close=True)
    tale.ok("runs.wait", run_ids=[run_id], **{"from": waited["from"]}, timeout_ms=WITHIN_MS)


def _input(tale: Tale) -> None:
    command = "stty -echo; echo up; read x; echo got $x; exec sleep 1000"
    run_id = tale.ok("shell", action="spawn", command=command, pty=True, cwd="/")["run_id"]
    tale.ok("runs.wait", run_ids=[run_id], **{"for": [{"regex": "up\n"}]}, timeout_ms=WITHIN_MS)
    tale.ok("shell", action="send_keys", run_id=run_id, text="it", keys=["Enter"])
    tale.ok("runs.wait", run_ids=[run_id], **{"for": [{"regex": "it\n"}]}, timeout_ms=WITHIN_MS)
    tale.ok("runs.read", run_id=run_id, stream="pty")
    tale.ok("runs.resize", run_id=run_id, rows=10, cols=30)
    tale.refused("invalid_argument", "runs.resize", run_id=run_id, rows=0, cols=30)
    tale.refused("not_found", "runs.resize", run_id="nosuchrun", rows=1, cols=1)
    for asked in ({}, {"format": "ansi"}, {"format": "html", "replay_bytes": 1 << 20}):
        tale.ok("runs.snapshot", run_id=run_id, **asked)
    tale.refused("invalid_argument", "runs.snapshot", run_id=run_id, format="png")
    tale.refused("not_found", "runs.snapshot", run_id="nosuchrun")
    tale.ok("runs.read", run_id=run_id, stream="pty", view="terminal", encoding="base64")
    tale.refused("invalid_argument", "runs.read", run_id=run_id, stream="pty", view="terminal")
    tale.ok("runs.attend", run_id=run_id, terminal="one", wait_ms=1)
    tale.refused("invalid_argument", "runs.attend", run_id=run_id, terminal="/")
    tale.refused("not_found", "runs.attend", run_id="nosuchrun", terminal="one")
    tale.ok("runs.answer", run_id=run_id, data_base64="eA==")
    tale.refused("invalid_argument", "runs.answer", run_id=run_id, data_base64="?")
    tale.refused("not_found", "runs.answer", run_id="nosuchrun", data_base64="")
    tale.unsaid("runs.kill", lambda answer: answer["status"] == "killed", run_id=run_id)
    tale.refused("conflict", "runs.write", run_id=run_id, text="late")
    tale.refused("not_found", "runs.write", run_id="nosuchrun", text="x")
    tale.refused("invalid_argument", "runs.write", run_id=run_id, data_base64="?")


def _backlog(tale: Tale) -> None:
    watch = [{"regex": "hit [0-9]\n", "event": "found"}]
    tale.ok("shell", command="echo hit 1", session_id="s3", watch=watch)
    taken = tale.ok("backlog.take", session_id="s3", max=5, wait_ms=WITHIN_MS)
    tale.ok("backlog.take", session_id="s3")
    tale.refused("invalid_argument", "backlog.take", session_id="s3", max=0)
    tale.refused("invalid_argument", "backlog.take", session_id="/")
    tale.ok("backlog.ack", lease=taken["lease"])
    tale.call("backlog.ack", lease=taken["lease"])
    tale.refused("invalid_argument", "backlog.ack", lease=5)


def _events(tale: Tale) -> None:
    tale.ok("shell", command="codex() { echo out; }; codex", cwd="/", session_id="s4", context={"runId": "r"})
    mine: Answer = {"session": "s4", "events": ["exec.*"]}
    tale.unsaid("exec_events.recent", lambda answer: len(answer["events"]) == 3, **mine)
    tale.ok("exec_events.recent", **mine)
    tale.ok("exec_events.recent", **mine, limit=1)
    tale.refused("invalid_argument", "exec_events.recent", after=-1)
    tale.refused("invalid_argument", "exec_events.recent", events="exec.*")


def _blocks(tale: Tale) -> None:
    talk = {"conversation_id": "c1"}
    for op in ("pty.status", "pty.read_spool", "blocks.since"):
        tale.refused("not_found", op, conversation_id="nosuchtalk")
        tale.refused("invalid_argument", op, conversation_id="no/talk")
        tale.refused("invalid_argument", op, conversation_id="c1", nosuch=1)
    tale.ok("pty.open", **talk, cwd="/", shell="sh")
    tale.ok("pty.open", **talk)
    tale.refused("conflict", "pty.open", **talk, shell="bash")
    tale.refused("invalid_argument", "pty.open", **talk, rows=0)
    block = tale.ok("pty.run", **talk, cmd="printf 'a needle\\nin hay'", timeout_ms=WITHIN_MS)["block_id"]
    tale.ok("pty.run", **talk, cmd="(exit 4)", key="k", timeout_ms=WITHIN_MS)
    tale.ok("pty.run", **talk, cmd="(exit 4)", key="k", timeout_ms=WITHIN_MS)
    tale.refused("conflict", "pty.run", **talk, cmd="(exit 5)", key="k", timeout_ms=WITHIN_MS)
    tale.refused("invalid_argument", "pty.run", **talk, cmd="")
    tale.ok("pty.read_spool", **talk, from_cursor=0)
    tale.refused("invalid_argument", "pty.read_spool", **talk, from_cursor=1 << 40)
    tale.ok("blocks.since", **talk)
    tale.ok("blocks.since", **talk, after_block_id=block)
    tale.refused("not_found", "blocks.since", **talk, after_block_id="nosuchblock")
    tale.ok("blocks.get", **talk, block_id=block)
    tale.refused("not_found", "blocks.get", **talk, block_id="nosuchblock")
    tale.ok("blocks.read", **talk, block_id=block, offset=2, max_bytes=6)
    tale.refused("invalid_argument", "blocks.read", **talk, block_id=block, offset=1000)
    tale.refused("not_found", "blocks.read", **talk, block_id="nosuchblock")
    tale.ok("blocks.search", **talk, query="needle")
    tale.ok("blocks.search", **talk, query="ne+dle$", regex=True, limit=1)
    tale.refused("invalid_argument", "blocks.search", **talk, query="(a", regex=True)


def _talking(tale: Tale) -> None:
    talk = {"conversation_id": "c2"}
    tale.ok("pty.open", **talk, cwd="/")
    begun = tale.ok("pty.exec_interactive", **talk, cmd="echo asking; read x; echo got $x; read y")
    at = begun["resume_cursor"]
    tale.ok("pty.wait_for", **talk, match="asking\n", from_cursor=at, timeout_ms=WITHIN_MS)
    tale.ok("pty.status", **talk)
    tale.refused("busy", "pty.exec_block", **talk, cmd="echo no")
    tale.refused("busy", "pty.exec_interactive", **talk, cmd="echo no")
    tale.refused("busy", "pty.run", **talk, cmd="echo no")
    tale.refused("timeout", "pty.wait_for", **talk, match="nowhere", from_cursor=at, timeout_ms=30)
    tale.refused("timeout", "pty.wait_prompt", **talk, from_cursor=at, timeout_ms=30)
    tale.refused("timeout", "pty.expect_send", **talk, expect="nowhere", send="x", from_cursor=at, timeout_ms=30)
    tale.refused("invalid_argument", "pty.wait_for", **talk, match="(a", match_type="regex")
    tale.refused("invalid_argument", "pty.wait_for", **talk, match="x", from_cursor=1 << 40)
    tale.refused("invalid_argument", "pty.wait_prompt", **talk, from_cursor="0")
    tale.refused("invalid_argument", "pty.expect_send", **talk, expect="x")
    tale.ok("pty.expect_send", **talk, expect="asking\n", send="it\r", from_cursor=at, timeout_ms=WITHIN_MS)
    tale.ok("pty.wait_for", **talk, match="^got (.*)$", match_type="line", from_cursor=at, timeout_ms=WITHIN_MS)
    tale.ok("pty.send", **talk, data="you\r")
    tale.ok("pty.wait_prompt", **talk, from_cursor=at, timeout_ms=WITHIN_MS)
    tale.refused("conflict", "pty.send", **talk, data="nobody\r")
    tale.refused("invalid_argument", "pty.send", **talk)
    tale.ok("pty.resize", **talk, rows=30, cols=100)
    tale.refused("invalid_argument", "pty.resize", **talk, rows=0, cols=100)
    tale.ok("pty.snapshot", **talk)
    tale.refused("invalid_argument", "pty.snapshot", **talk, replay_bytes=1)
    tale.refused("not_found", "pty.snapshot", conversation_id="nosuch")
    tale.refused("too_large", "pty.exec_block", **talk, cmd=": " + "x" * (1 << 20))
    tale.refused("invalid_argument", "pty.exec_block", **talk, cmd="a", cwd=5)


def _ends(tale: Tale) -> None:
    talk = {"conversation_id": "c3"}
    tale.ok("pty.open", **talk, cwd="/")
    tale.ok("pty.open", conversation_id="c4", cwd="/")
    begun = tale.ok("pty.exec_block", **talk, cmd="echo up; sleep 1000")
    tale.ok("pty.wait_for", **talk, match="up\n", timeout_ms=WITHIN_MS)
    tale.refused("timeout", "pty.run", conversation_id="c4", cmd="printf up; read x", timeout_ms=2000)
    tale.ok("pty.signal", **talk, signal="SIGINT")
    tale.ok("pty.wait_for", **talk, match_type="exit", timeout_ms=WITHIN_MS)
    tale.refused("invalid_argument", "pty.signal", **talk, signal="SIGNOSUCH")
    tale.ok("pty.end_session", **talk)
    tale.refused("invalid_argument", "pty.end_session", **talk, force="yes")
    tale.ok("pty.reset", **talk)
    tale.refused("invalid_argument", "pty.reset", **talk, force=True)
    tale.refused("invalid_argument", "pty.close", **talk, force=True)
    # A shell that is ended may still say so, or not.
    for conversation_id in ("c3", "c4"):
        tale.unsaid("pty.close", lambda answer: answer["closed"], conversation_id=conversation_id)
    tale.unsaid("pty.status", lambda answer: answer["closed"], **talk)
    tale.ok("blocks.get", **talk, block_id=begun["block_id"])


def _house(tale: Tale) -> None:
    tale.ok("daemon.status")
    tale.refused("invalid_argument", "daemon.status", nosuch=1)
    tale.ok("daemon.doctor")
    tale.unsaid("runs.verify", lambda answer: answer["sound"])
    tale.refused("not_found", "runs.verify", run_id="nosuchrun")
    gone = tale.ok("shell", command="echo gone", key="gone", session_id="s9")["run_id"]
    tale.ok("runs.prune", older_than_ms=1 << 50, dry_run=True)
    tale.refused("invalid_argument", "runs.prune", older_than_ms="7d")
    tale.unsaid("runs.prune", lambda answer: gone in answer["runs"], keep_bytes=0)
    tale.call("runs.get", run_id=gone)
    tale.call("runs.read", run_id=gone)
    tale.refused("gone", "shell", command="echo gone", key="gone", session_id="s9")
    tale.refused("invalid_argument", "daemon.stop", kill_runs="yes")


def operations(reference: str) -> Iterator[str]:
    """The names of all operations, as the reference has them."""
    for line in reference.splitlines():
        if line.startswith("## `") and line.endswith("`"):
            yield line[4:-1]
