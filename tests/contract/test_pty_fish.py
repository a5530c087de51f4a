"""fish, whose language is another: blocks run in the live shell, Ctrl-C and `exit` do what they do for a person."""

import shutil
from pathlib import Path

import pytest

from .surface import Http
from .talk import talking

pytestmark = pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")


@pytest.mark.requirement("3.3")
def test_what_a_block_changes_lasts_in_fish(http: Http) -> None:
    with talking(http, shell="fish") as talk:
        talk.run("cd /tmp; set -x A 5; set b 6; function f; echo called; end; sh -c 'exit 9'")
        assert talk.run('echo "$status"; echo $A $b; f; pwd')["output"] == "9\n5 6\ncalled\n/tmp\n"
        assert talk.run("pwd", cwd="/usr")["output"] == "/usr\n"
        assert talk.run("pwd", cwd="/no where")["exit_code"] == 1


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize(
    ("cmd", "code", "output"),
    [
        ("echo one\necho two\n", 0, "one\ntwo\n"),
        ("for i in 1 2\n    echo in $i\nend", 0, "in 1\nin 2\n"),
        ("echo here | cat -", 0, "here\n"),
        (": " + "x" * ((1 << 20) - 20) + "\necho long", 0, "long\n"),
        ("sleep 0.01 & ; wait; echo done", 0, "done\n"),
        ("printf 'a\\rb'", 0, "a\rb"),
        ("  echo '  spaces  '  ", 0, "  spaces  \n"),
        ("not_a_command", 127, "not_a_command"),
    ],
)
def test_any_command_works_in_fish(http: Http, cmd: str, code: int, output: str) -> None:
    with talking(http, shell="fish") as talk:
        done = talk.run(cmd)
        assert done["exit_code"] == code, done
        assert output in done["output"], done


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("cmd", ['echo "unbalanced', "if true; then", "cd /nowhere", "echo $$", "read <", "end"])
def test_a_block_that_fails_leaves_fish_alive(http: Http, cmd: str) -> None:
    with talking(http, shell="fish") as talk:
        talk.run("set kept 1")
        done = talk.run(cmd)
        assert (done["status"], done["exit_code"] == 0) == ("failed", False), done
        assert talk.run("echo $kept")["output"] == "1\n"
        assert talk.status()["resets"] == 0


@pytest.mark.requirement("3.3", "3.9", "F58")
@pytest.mark.parametrize(
    ("cmd", "code", "signal"),
    [("exit 3", 3, None), ("exec sh -c 'exit 4'", 4, None), ("kill -9 $fish_pid", None, "SIGKILL")],
)
def test_the_end_of_fish_ends_the_block_and_resets(http: Http, cmd: str, code: int | None, signal: str | None) -> None:
    with talking(http, shell="fish") as talk:
        talk.run("cd /tmp; set -gx KEPT yes 'and  more'; set gone 1")
        done = talk.run(cmd)
        assert (done["status"], done["exit_code"]) == ("failed", code), done
        block = talk.block(done["block_id"])
        assert (block["ended_by"], block["signal"]) == ("shell_gone", signal)
        assert talk.run("echo $KEPT $gone $PWD")["output"] == "yes and  more /tmp\n"
        status = talk.status()
        assert (status["resets"], status["blocks"], status["mode"]) == (1, 3, "idle")


@pytest.mark.requirement("3.3", "F58")
@pytest.mark.parametrize(
    "cmd", ["sh -c 'echo up; exec sleep 600'; echo never", "echo up; while true; end; echo never", "cat; echo never"]
)
def test_ctrl_c_ends_a_block_of_fish(http: Http, cmd: str) -> None:
    with talking(http, shell="fish") as talk:
        begun = talk.ok("exec_interactive", cmd=f"set kept 1; {cmd}")
        if cmd.startswith("cat"):
            talk.ok("send", data="up\r")
        talk.wait_for("up\nup\n" if cmd.startswith("cat") else "up\n", begun["resume_cursor"])
        talk.ok("send", data="\x03")
        ended = talk.wait_for("", 0, "exit")["extra"]
        assert ended == {"block_id": begun["block_id"], "exit_code": 130, "status": "cancelled"}
        assert talk.run("echo $kept")["output"] == "1\n"
        assert "never" not in talk.spool()
        assert "__limpet" not in talk.spool()


@pytest.mark.requirement("3.3")
def test_fish_asks_before_it_leaves_jobs_behind(http: Http) -> None:
    with talking(http, shell="fish") as talk:
        talk.run("sleep 600 &")
        assert talk.run("exit 3")["status"] == "failed"
        assert talk.status()["resets"] == 0
        assert talk.block(talk.run("exit 4")["block_id"])["ended_by"] == "shell_gone"


@pytest.mark.requirement("3.3")
def test_fish_reads_what_is_typed(http: Http) -> None:
    with talking(http, shell="fish") as talk:
        begun = talk.ok("exec_interactive", cmd='read -P "name: " -l name; echo hello $name')
        asked = talk.wait_for("name: ", begun["resume_cursor"])
        talk.ok("send", data="you\r")
        talk.wait_for("hello you", asked["resume_cursor"])
        assert talk.wait_prompt(asked["resume_cursor"])["exit_code"] == 0


@pytest.mark.requirement("3.3")
def test_a_file_of_ones_own_is_read_first_by_fish(http: Http, tmp_path: Path) -> None:
    rc = tmp_path / "my rc"
    rc.write_text(
        "function greet; echo hello $argv; end\nset -gx MINE yes\nfunction fish_prompt; echo 'mine> '; end\n"
        "function mine --on-event fish_prompt; echo hook; end\n"
    )
    with talking(http, shell="fish", rc=str(rc)) as talk:
        assert talk.run("greet $MINE")["output"] == "hello yes\n"
        talk.run("functions --erase fish_prompt; bind --erase --all")
        begun = talk.ok("exec_interactive", cmd="echo up; while true; end")
        talk.wait_for("up\n", begun["resume_cursor"])
        talk.ok("signal", signal="SIGINT")
        talk.wait_for("", 0, "exit")
        assert talk.run("greet again")["output"] == "hello again\n"
        assert "mine> " not in talk.spool()
