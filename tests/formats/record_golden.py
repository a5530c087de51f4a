"""Records complete directories of real runs: `python -m tests.formats.record_golden DIR`. What is committed stays."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from limpet.engine.adoption import settle_dead
from limpet.engine.conversations import shells
from limpet.engine.live_run import LiveRun
from limpet.model.facts import DaemonFact, StopAsked, Submitted
from limpet.model.run import Run
from limpet.store.run_directory import RunDirectory
from tests.faults.disks import small_tmpfs
from tests.formats.golden_run import MANIFEST, public_state
from tests.keeper.driver import Keeper

PAGE_BYTES = 4096
SLEEPER = "exec >/dev/null 2>&1 </dev/null; exec sleep 1000"


class Recording:
    """One run under one keeper; the daemon's journal is written by the engine's own hand."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        files = RunDirectory(directory)
        files.path.mkdir(mode=0o700)
        self.keeper = Keeper(files.kept)
        self.live = LiveRun(Run(run_id=directory.name), files, lambda _live, _items: None)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.detach()
        self.keeper.__exit__(kind, error, trace)

    def ask(self, make: Callable[[int, int, int], DaemonFact]) -> None:
        self.live.catch_up()
        self.live.ask(make)

    def ask_to_stop(self) -> None:
        self.ask(lambda n, at, after: StopAsked(n=n, at=at, after=after, signal="SIGTERM"))

    def start(
        self, *argv: str, size: tuple[int, int] | None = None, max_output_bytes: int = 1 << 24, **fields: object
    ) -> None:
        def submitted(n: int, at: int, after: int) -> Submitted:
            return Submitted(
                n=n,
                at=at,
                after=after,
                run_id=self.directory.name,
                session_id="golden",
                dialect="shell",
                command=" ".join(argv),
                argv=list(argv),
                cwd="/",
                env={"LANG": "C.UTF-8", "API_TOKEN": "[redacted]"},
                rows=size[0] if size else None,
                cols=size[1] if size else None,
                max_output_bytes=max_output_bytes,
                labels=["recorded"],
            )

        self.ask(submitted)
        pty = None if size is None else {"rows": size[0], "cols": size[1]}
        self.keeper.start(*argv, run=self.directory.name, pty=pty, head_bytes=max_output_bytes, **fields)

    def finish(self) -> None:
        self.keeper.wait_gone()
        self.live.catch_up()


def plain(run: Recording) -> None:
    """Both pipes, standard input, text of several alphabets, an exit code."""
    run.start("/bin/sh", "-c", "cat; echo 'grüße, 世界'; echo oops >&2; exit 3", stdin={"data": "aGVsbG8K"})
    run.finish()


def failed_start(run: Recording) -> None:
    """A program that is not there."""
    run.start("/no/such/program", "x")
    run.finish()


def kill_with_survivors(run: Recording) -> None:
    """The main process ends, one that left its session stays; a kill ends that one."""
    run.start("/bin/sh", "-c", f"(setsid sh -c '{SLEEPER}') & echo gone")
    run.keeper.wait_fact("ended")
    run.ask_to_stop()
    assert run.keeper.call("kill", grace_ms=100)["ok"]
    run.finish()


def killed(run: Recording) -> None:
    """The whole ladder: TERM is ignored, so the grace runs out."""
    run.start("/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done")
    run.keeper.wait_fact("wrote")
    run.ask_to_stop()
    assert run.keeper.call("kill", grace_ms=50)["ok"]
    run.finish()


def terminal(run: Recording) -> None:
    """A terminal: typed and hidden input, a new size, a signal, lone CRs and LFs that came bare."""
    script = r"read a; echo got $a; stty -echo; echo hide; read b; printf '10%%\r20%%\r'; "
    script += r"stty -opost; printf 'bare\nwith\r\nbare\n'; exec sleep 1000"
    run.start("/bin/sh", "-c", script, size=(24, 80))
    assert run.keeper.write(b"typed\n")["ok"]
    run.keeper.wait_until(lambda _facts: b"hide\n" in run.keeper.spool("pty"))
    assert run.keeper.write(b"hidden\n")["ok"]
    run.keeper.wait_until(lambda _facts: run.keeper.spool("pty").endswith(b"with\nbare\n"))
    assert run.keeper.call("resize", rows=50, cols=132)["ok"]
    assert run.keeper.call("signal", signal="SIGINT")["ok"]
    run.finish()


def hole(run: Recording) -> None:
    """A spool past its bound: the head stays, the middle is given up."""
    script = r"for i in 1 2 3 4 5 6; do head -c 4096 /dev/zero | tr '\0' $i; sleep 0.05; done"
    run.start("/bin/sh", "-c", script, max_output_bytes=1, spool_max_bytes=2 * PAGE_BYTES)
    run.finish()
    assert run.keeper.named("hole")


def torn(run: Recording) -> None:
    """The journal's last write stops inside a line, at a file size limit; then SIGKILL, and the daemon finds it."""
    run.start("/bin/sh", "-c", "echo said; cat", stdin="open")
    run.keeper.wait_fact("wrote")
    size = run.live.directory.keeper_journal.stat().st_size
    resource.prlimit(run.keeper.pid, resource.RLIMIT_FSIZE, (size + 70, size + 70))
    run.keeper.connection.post("write", data="bW9yZQo=")
    while run.keeper.connection.wakeup().get("stalled") is None:
        pass
    run.keeper.process.kill()
    run.keeper.process.wait()
    settle_dead(run.live)
    assert not run.live.directory.keeper_journal.read_bytes().endswith(b"\n")


def stalled(run: Recording) -> None:
    """A disk that fills up, and then has room again."""
    run.start("/bin/sh", "-c", r"head -c 30000 /dev/zero | tr '\0' x")
    run.keeper.wait_fact("stalled")
    (run.directory.parent / "filler").unlink()
    run.finish()


def conversation(run: Recording) -> None:
    """A shell that is handed a block, which forges a prompt and goes away, and the shell that follows it."""
    with tempfile.TemporaryDirectory(prefix="golden-") as place:
        argv, env = shells.begin("sh", Path(place), None, {})
        known = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        run.start(*argv, size=(24, 80), env=known | env, shells=str(run.live.directory.kept))
        run.keeper.wait_fact("prompt")
        text = r"printf '\036limpet:f0:0\037\n'; cd /; exit 7"
        assert run.keeper.call("deliver", line=shells.line_for("sh", None), text=text, block="b1")["ok"]
        run.keeper.wait_until(lambda facts: sum(fact["fact"] == "prompt" for fact in facts) == 2)
        deaf = r"sh -c 'trap \"\" TERM; echo deaf; while :; do sleep 1000; done'"
        assert run.keeper.call("deliver", line=shells.line_for("sh", None), text=deaf, block="b2")["ok"]
        run.keeper.wait_until(lambda _facts: run.keeper.spool("pty").endswith(b"deaf\n"))
        run.ask_to_stop()
        assert run.keeper.call("kill", grace_ms=50)["ok"]
        run.finish()
        assert run.keeper.named("suspicious")


def asking(run: Recording) -> None:
    """A program that asks its terminal where the cursor stands, is answered, and says what it heard."""
    script = r"stty raw -echo; printf '\033[5;7H\033[6n'; dd bs=1 count=6 2>/dev/null | tr '\033' E; stty sane"
    run.start("/bin/sh", "-c", script, size=(24, 80))
    run.keeper.wait_fact("asked")
    asked = run.keeper.named("asked")[0]
    assert run.keeper.call("answer", data="G1s1OzdS", of=asked["end"])["ok"]
    run.finish()
    assert run.keeper.spool("pty").endswith(b"E[5;7R")


def conversation_in_fish(run: Recording) -> None:
    """A shell that draws before its prompt."""
    with tempfile.TemporaryDirectory(prefix="golden-") as place:
        argv, env = shells.begin("fish", Path(place), None, {})
        known = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": place}
        run.start(*argv, size=(24, 80), env=known | env, shells=str(run.live.directory.kept))
        run.keeper.wait_fact("prompt")
        assert run.keeper.call("deliver", line=shells.line_for("fish", None), text="echo done", block="b1")["ok"]
        run.keeper.wait_until(lambda facts: sum(fact["fact"] == "prompt" for fact in facts) == 2)
        run.ask_to_stop()
        assert run.keeper.call("kill", grace_ms=10_000)["ok"]
        run.finish()
        assert run.keeper.named("prompt")[0]["drawn"]


CASES = (
    plain,
    failed_start,
    kill_with_survivors,
    killed,
    terminal,
    hole,
    torn,
    stalled,
    conversation,
    asking,
    conversation_in_fish,
)


def record_one(case: Callable[[Recording], None], into: Path) -> Path:
    """One run anew; its directory under `into`, where none of that name may be."""
    name = case.__name__
    if (into / name).exists():
        raise FileExistsError(f"{into / name} is recorded already, and stays as it is")
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="golden-")))
        if case is stalled:
            disk = stack.enter_context(small_tmpfs(base, 64 << 10))
            disk.fill(leave_bytes=32 << 10)
            base = disk.at
        with Recording(base / name) as run:
            case(run)
        (base / name / "control.sock").unlink(missing_ok=True)
        shutil.copytree(base / name, into / name)
    return into / name


def record(into: Path) -> None:
    """All runs, what each of them comes to, and the digests of all files."""
    into.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        directory = record_one(case, into)
        state = json.dumps(public_state(directory), indent=1, sort_keys=True)
        (into / f"{directory.name}.json").write_text(state + "\n", "utf-8")
    files = sorted(path for path in into.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(into)}\n" for path in files]
    (into / MANIFEST).write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
