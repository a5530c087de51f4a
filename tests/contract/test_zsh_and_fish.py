"""Conversations in zsh and fish, as a person would use them: what lasts, what works, what ends the shell (3.3, F58)."""

import base64
import sys
from pathlib import Path

import pytest

from .surface import Http
from .talk import SENTINEL, talking

SHELLS = ["zsh", "fish"]


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize(
    ("shell", "change", "look"),
    [
        (
            "zsh",
            "cd /tmp; export A=5; b=6; f() { echo called $*; }; alias g='f from'",
            "echo $A $b; f me; g alias; pwd",
        ),
        (
            "fish",
            "cd /tmp; set -gx A 5; set -g b 6; function f; echo called $argv; end; alias g='f from'",
            "echo $A $b; f me; g alias; pwd",
        ),
    ],
)
def test_what_a_block_changes_lasts(http: Http, shell: str, change: str, look: str) -> None:
    with talking(http, shell=shell) as talk:
        assert talk.run(change)["exit_code"] == 0
        assert talk.run(look)["output"] == "5 6\ncalled me\ncalled from alias\n/tmp\n"
        assert talk.run("pwd", cwd="/usr")["output"] == "/usr\n"


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", SHELLS)
def test_the_exit_code_of_the_last_block_is_there_for_the_next(http: Http, shell: str) -> None:
    status = "$status" if shell == "fish" else "$?"
    with talking(http, shell=shell) as talk:
        assert talk.run("sh -c 'exit 9'")["exit_code"] == 9
        assert talk.run(f"echo {status}")["output"] == "9\n"
        assert talk.run("true")["exit_code"] == 0


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize(
    ("shell", "cmd", "code", "output"),
    [
        ("zsh", "echo one\necho two\n", 0, "one\ntwo\n"),
        ("zsh", "cat <<E\nin $((1 + 1))\nE\n", 0, "in 2\n"),
        ("zsh", "if true\nthen\n  echo 'it'\"'\"'s'\nfi", 0, "it's\n"),
        ("zsh", "for x in *(N); do :; done; print -l {1..3}", 0, "1\n2\n3\n"),
        ("zsh", "echo hi | while read x; do echo got $x; done", 0, "got hi\n"),
        ("zsh", "print -n no-newline", 0, "no-newline"),
        ("zsh", "setopt xtrace; true; unsetopt xtrace", 0, ""),
        ("zsh", "# only a comment", 0, ""),
        ("zsh", "echo hi # said", 0, "hi\n"),
        ("zsh", 'echo a!b "c!d"', 0, "a!b c!d\n"),
        ("fish", "echo one\necho two\n", 0, "one\ntwo\n"),
        ("fish", "for x in a b\n  echo $x\nend", 0, "a\nb\n"),
        ("fish", "if true\n  echo 'it'\"'\"'s'\nend", 0, "it's\n"),
        ("fish", "printf no-newline", 0, "no-newline"),
        ("fish", "echo hi | read x; echo got $x", 0, "got hi\n"),
        ("fish", "# only a comment", 0, ""),
        ("fish", "begin; echo in; end | cat", 0, "in\n"),
        ("fish", "echo 'tab\tand é😀'", 0, "tab\tand é😀\n"),
        ("zsh", "echo 'tab\tand é😀'", 0, "tab\tand é😀\n"),
        ("zsh", "sleep 0.01 & wait $!; echo done", 0, "done\n"),
        ("fish", "sleep 0.01 & wait; echo done", 0, "done\n"),
    ],
)
def test_any_command_works(http: Http, shell: str, cmd: str, code: int, output: str) -> None:
    with talking(http, shell=shell) as talk:
        done = talk.run(cmd)
        assert (done["exit_code"], done["status"]) == (code, "completed"), done
        assert done["output"].endswith(output), done  # shells also say which jobs are done
        if "&" not in cmd and "xtrace" not in cmd:
            assert done["output"] == output, done


@pytest.mark.requirement("3.3", "3.4")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_of_a_mebibyte_and_its_echo(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        done = talk.run("true " + "x" * ((1 << 20) - 30) + "\necho long")
        assert (done["exit_code"], done["output"]) == (0, "long\n")
        assert "xxx" not in talk.spool()


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("cmd", ['echo "unbalanced', "if true; then", "cd /nowhere", "no-such-command-anywhere", ")"])
def test_a_block_that_fails_leaves_the_shell_alive(http: Http, shell: str, cmd: str) -> None:
    with talking(http, shell=shell) as talk:
        talk.run("export KEPT=1" if shell == "zsh" else "set -gx KEPT 1")
        pid = talk.status()["shell_id"]
        done = talk.run(cmd)
        assert (done["status"], done["exit_code"] == 0) == ("failed", False), done
        assert talk.run("echo $KEPT")["output"] == "1\n"
        assert (talk.status()["resets"], talk.status()["shell_id"]) == (0, pid)


@pytest.mark.requirement("3.3", "3.9", "F58")
@pytest.mark.parametrize(
    ("shell", "cmd", "code", "signal"),
    [
        ("zsh", "exit 3", 3, None),
        ("zsh", "exec sh -c 'exit 4'", 4, None),
        ("zsh", "kill -9 $$", None, "SIGKILL"),
        ("zsh", "set -e; false", 1, None),
        ("zsh", "exec sleep 0.2", 0, None),
        ("fish", "exit 3", 3, None),
        ("fish", "exec sh -c 'exit 4'", 4, None),
        ("fish", "kill -9 $fish_pid", None, "SIGKILL"),
        ("fish", "exec sleep 0.2", 0, None),
    ],
)
def test_the_end_of_the_shell_ends_the_block_and_resets(
    http: Http, shell: str, cmd: str, code: int | None, signal: str | None
) -> None:
    with talking(http, shell=shell) as talk:
        talk.run("cd /tmp; export KEPT=yes; gone=1" if shell == "zsh" else "cd /tmp; set -gx KEPT yes; set -g gone 1")
        done = talk.run(cmd)
        assert done["exit_code"] == code, done
        block = talk.block(done["block_id"])
        assert (block["ended_by"], block["signal"]) == ("shell_gone", signal)
        assert talk.run('echo "$KEPT-$gone-$PWD"')["output"] == "yes--/tmp\n"
        status = talk.status()
        assert (status["resets"], status["blocks"], status["mode"]) == (1, 3, "idle")
        assert "cd /tmp" not in talk.spool()


@pytest.mark.requirement("3.3", "3.4")
@pytest.mark.parametrize("shell", SHELLS)
def test_each_command_is_followed_by_one_sentinel(http: Http, shell: str) -> None:
    with talking(http, shell=shell, cwd="/") as talk:
        for cmd in ("true", "cd /tmp", "printf no-newline", "sh -c 'exit 9'"):
            talk.run(cmd)
        spool = talk.spool()
        found = SENTINEL.findall(spool)
        assert [code for _, _, code in found] == ["0", "0", "0", "0", "9"]
        assert [base64.b64decode(cwd).decode() for _, cwd, _ in found] == ["/", "/", "/tmp", "/tmp", "/tmp"]
        # Nothing else of what such a shell shows at its prompt: no colours, titles, marks of missing newlines.
        assert SENTINEL.sub("", spool).split() == ["no-newline"], spool
        blocks = [each["block_id"] for each in talk.ok("blocks.since")["blocks"]]
        outputs = [talk.ok("blocks.read", block_id=block_id)["data"] for block_id in blocks]
        assert outputs == ["", "", "no-newline", ""]


@pytest.mark.requirement("3.3", "3.6")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_program_is_talked_to_and_interrupted(http: Http, shell: str) -> None:
    ask = "import sys; print('name?', flush=True); print('hello', sys.stdin.readline().strip()); sys.exit(5)"
    with talking(http, shell=shell) as talk:
        begun = talk.ok("exec_interactive", cmd=f'{sys.executable} -c "{ask}"')
        sent = talk.ok("expect_send", expect="name?", send="Ada\r", from_cursor=begun["resume_cursor"])
        said = talk.wait_for("hello Ada", sent["resume_cursor"])
        assert talk.wait_prompt(said["resume_cursor"])["exit_code"] == 5
        looping = talk.ok("exec_block", cmd="sh -c 'echo up; exec sleep 600'")
        talk.wait_for("up\n", said["resume_cursor"])
        talk.ok("signal", signal="SIGINT")
        ended = talk.wait_for("", 0, "exit")["extra"]
        assert (ended["block_id"], ended["status"]) == (looping["block_id"], "cancelled")
        assert talk.run("echo on")["output"] == "on\n"


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_virtualenv_stays_active(http: Http, tmp_path: Path, shell: str) -> None:
    activate = tmp_path / "bin" / ("activate.fish" if shell == "fish" else "activate")
    activate.parent.mkdir()
    if shell == "fish":
        activate.write_text(
            f"set -gx VIRTUAL_ENV '{tmp_path}'\nset -gx PATH '{tmp_path}/bin' $PATH\n"
            "functions -c fish_prompt _old_fish_prompt\n"
            "function fish_prompt; printf '(venv) '; _old_fish_prompt; end\n"
        )
    else:
        activate.write_text(
            f"export VIRTUAL_ENV='{tmp_path}'\nPATH='{tmp_path}/bin':$PATH\nPS1=\"(venv) ${{PS1:-}}\"\n"
        )
    tool = tmp_path / "bin" / "mytool"
    tool.write_text("#!/bin/sh\necho my tool\n")
    tool.chmod(0o755)
    with talking(http, shell=shell) as talk:
        talk.run(f"source '{activate}'")
        done = talk.run("mytool; echo $VIRTUAL_ENV")
        assert done["output"] == f"my tool\n{tmp_path}\n"
        assert "(venv)" not in talk.spool()


@pytest.mark.requirement("3.4", "F49")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_lookalike_ends_nothing(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        talk.run("true")
        old = SENTINEL.search(talk.spool())
        assert old
        begun = talk.ok(
            "exec_block", cmd=f"printf '%s\\n' '{old.group()}' '__FWS_PROMPT__ ts=1 cwd_b64=Lw== exit=0'; cat"
        )
        seen = talk.wait_for("ts=1 cwd_b64=Lw== exit=0\n", 0)
        assert talk.status()["mode"] == "block_running"
        late = talk.call("wait_prompt", from_cursor=seen["resume_cursor"], timeout_ms=300)
        assert late["error"] == "timeout"
        talk.ok("send", data="\x04")
        assert talk.wait_prompt(seen["resume_cursor"])["block_id"] == begun["block_id"]
        assert old.group() in talk.ok("blocks.read", block_id=begun["block_id"])["data"]
