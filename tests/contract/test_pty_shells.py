"""Blocks run in the live shell, any command works in it, and what ends the shell ends the block alone."""

from pathlib import Path

import pytest

from .surface import Http
from .talk import POSIX_SHELLS, talking


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_what_a_block_changes_lasts(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        talk.run("cd /tmp; export A=5; b=6; f() { echo called; }; (exit 9)")
        assert talk.run('echo "$?"; echo $A $b; f; pwd')["output"] == "9\n5 6\ncalled\n/tmp\n"
        assert talk.run("pwd", cwd="/usr")["output"] == "/usr\n"


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
@pytest.mark.parametrize(
    ("cmd", "code", "output"),
    [
        ("echo one\necho two\n", 0, "one\ntwo\n"),
        ("cat <<E\nin $((1 + 1))\nE\n", 0, "in 2\n"),
        (": " + "x" * ((1 << 20) - 20) + "\necho long", 0, "long\n"),
        ("sleep 0.01 & wait $! && echo done", 0, "done\n"),
        ("set -u; printf x; set +u", 0, "x"),
        ("printf 'a\\rb'", 0, "a\rb"),
    ],
)
def test_any_command_works(http: Http, shell: str, cmd: str, code: int, output: str) -> None:
    with talking(http, shell=shell) as talk:
        done = talk.run(cmd)
        assert done["exit_code"] == code, done
        assert output in done["output"], done  # bash and sh also say which jobs are done


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
@pytest.mark.parametrize("cmd", ['echo "unbalanced', "if true; then", "cd /nowhere", "set -u; echo $nothing_there"])
def test_a_block_that_fails_leaves_the_shell_alive(http: Http, shell: str, cmd: str) -> None:
    with talking(http, shell=shell) as talk:
        talk.run("kept=1")
        done = talk.run(cmd)
        assert (done["status"], done["exit_code"] == 0) == ("failed", False), done
        assert talk.run("set +u; echo $kept")["output"] == "1\n"
        assert talk.status()["resets"] == 0


@pytest.mark.requirement("3.3", "3.9", "F58")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
@pytest.mark.parametrize(
    ("cmd", "code", "signal"),
    [
        ("exit 3", 3, None),
        ("exec sh -c 'exit 4'", 4, None),
        ("kill -9 $$", None, "SIGKILL"),
        ("set -e; false", 1, None),
    ],
)
def test_the_end_of_the_shell_ends_the_block_and_resets(
    http: Http, shell: str, cmd: str, code: int | None, signal: str | None
) -> None:
    with talking(http, shell=shell) as talk:
        talk.run("cd /tmp; export KEPT=yes; gone=1")
        done = talk.run(cmd)
        assert (done["status"], done["exit_code"]) == ("failed", code), done
        block = talk.block(done["block_id"])
        assert (block["ended_by"], block["signal"]) == ("shell_gone", signal)
        assert talk.run("echo $KEPT $gone $PWD")["output"] == "yes /tmp\n"
        status = talk.status()
        assert (status["resets"], status["blocks"], status["mode"]) == (1, 3, "idle")


@pytest.mark.requirement("3.3", "F58")
def test_a_shell_without_its_prompt_hook_is_heard_of_all_the_same(http: Http) -> None:
    with talking(http) as talk:
        begun = talk.ok("exec_block", cmd="unset PROMPT_COMMAND; sh -c 'echo up; exec sleep 600'")
        talk.wait_for("up", 0)
        talk.ok("signal", signal="SIGINT")
        ended = talk.wait_for("", 0, "exit")
        assert ended["extra"] == {"block_id": begun["block_id"], "exit_code": 130, "status": "cancelled"}


@pytest.mark.requirement("3.9")
def test_a_reset_ends_all_and_keeps_history(http: Http) -> None:
    with talking(http) as talk:
        talk.run("echo before")
        begun = talk.ok("exec_interactive", cmd="trap '' INT TERM; echo deaf; while :; do sleep 1; done")
        talk.wait_for("deaf", 0)
        assert talk.ok("end_session")["ended"] is False
        assert talk.ok("end_session", force=True)["by"] == "reset"
        assert talk.block(begun["block_id"])["ended_by"] == "reset"
        assert talk.run("echo after")["output"] == "after\n"
        assert "before\n" in talk.spool()


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_a_file_of_ones_own_is_read_first(http: Http, tmp_path: Path, shell: str) -> None:
    rc = tmp_path / "my rc"
    rc.write_text("greet() { echo hello $1; }\nexport MINE=yes\nPS1='mine> '\n")
    with talking(http, shell=shell, rc=str(rc)) as talk:
        assert talk.run("greet $MINE")["output"] == "hello yes\n"
        talk.run("PS1='again> '")
        assert "> " not in talk.spool()
        other = talk.call("open", shell="fish")
        assert (other["error"], other["reason"]) == ("conflict", "other_shell")


@pytest.mark.requirement("3.3")
def test_hooks_and_nested_shells_of_ones_own(http: Http) -> None:
    with talking(http) as talk:
        talk.run("PROMPT_COMMAND='echo mine $?'")
        assert talk.run("(exit 4)")["exit_code"] == 4
        talk.wait_for("mine 4", 0)
        begun = talk.ok("exec_interactive", cmd="bash --norc --noprofile")
        talk.ok("send", data="echo $((40 + 2)) inner\r")
        talk.wait_for("42 inner", begun["resume_cursor"])
        talk.ok("send", data="exit 6\r")
        assert talk.wait_for("", 0, "exit")["extra"]["exit_code"] == 6
        assert talk.run("trap 'echo bye' EXIT; trap : DEBUG; true")["exit_code"] == 0
        assert talk.run("(exit 8)")["exit_code"] == 8
        assert talk.run("exec bash --norc --noprofile -c 'exit 9'")["exit_code"] == 9
        assert talk.run("echo new")["output"] == "new\n"
