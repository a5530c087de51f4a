"""What each shell meets in a long life: hooks, traps, odd options, jobs, other shells, a terminal without a size."""

import pytest

from .surface import Http
from .talk import ALL_SHELLS, POSIX_SHELLS, talking


@pytest.mark.requirement("3.3", "F58")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_what_is_typed_ahead_is_the_next_commands(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        begun = talk.ok("exec_interactive", cmd="sh -c 'echo up; read one; echo got $one'")
        talk.wait_for("up\n", begun["resume_cursor"])
        talk.ok("send", data="first\rsecond\r")
        talk.wait_for("got first", begun["resume_cursor"])
        talk.wait_prompt(begun["resume_cursor"])
        assert "got second\n" in talk.run("sh -c 'read two; echo got $two'")["output"]


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_other_shells_within(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        begun = talk.ok("exec_interactive", cmd="bash --norc --noprofile")
        talk.ok("send", data="echo $((40 + 2)) inner\r")
        talk.wait_for("42 inner", begun["resume_cursor"])
        talk.ok("send", data="exit 6\r")
        assert talk.wait_for("", 0, "exit")["extra"]["exit_code"] == 6
        assert talk.run("echo outer")["output"] == "outer\n"


@pytest.mark.requirement("3.3", "F57")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_a_terminal_without_a_size_or_its_modes(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        talk.run("stty rows 0 cols 0")
        assert talk.run("echo still here")["output"] == "still here\n"
        talk.run("stty raw -echo")
        assert "raw\n" in talk.run("echo raw")["output"]
        talk.run("stty sane")
        begun = talk.ok("exec_interactive", cmd="sh -c 'echo up; exec sleep 600'")
        talk.wait_for("up", begun["resume_cursor"])
        talk.ok("send", data="\x03")
        assert talk.wait_for("", 0, "exit")["extra"]["status"] == "cancelled"


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_jobs_left_in_the_background_speak_on(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        begun = talk.run("sh -c 'read x </dev/null; sleep 0.3; echo from behind' &")
        assert begun["exit_code"] == 0
        talk.wait_for("from behind", 0)
        assert "on\n" in talk.run("echo on")["output"]  # zsh says at any moment that a job is done


@pytest.mark.requirement("3.3", "F58")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_the_first_thing_that_ends_a_block_may_come_at_once(http: Http, shell: str) -> None:
    """Injector: a signal before the shell has well begun what it was handed."""
    with talking(http, shell=shell) as talk:
        for number in range(5):
            begun = talk.ok("exec_interactive", cmd="sleep 600")
            ended = talk.ok("end_session")
            assert (ended["ended"], ended["mode"]) == (True, "idle")
            assert talk.block(begun["block_id"])["exit_code"] != 0
            assert talk.run(f"echo {number}")["output"].endswith(f"{number}\n")
        assert talk.status()["resets"] == 0


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
@pytest.mark.parametrize("options", ["set -eu", "set -e", "set -u", "set -C", "set -f", "set -a"])
def test_options_of_ones_own_stay(http: Http, shell: str, options: str) -> None:
    with talking(http, shell=shell) as talk:
        talk.run(options)
        before = talk.run("echo $-")["output"]
        assert talk.run("true && echo on")["output"] == "on\n"
        assert talk.run("echo $-")["output"] == before
        assert talk.status()["resets"] == 0


@pytest.mark.requirement("3.3")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_traps_and_names_of_ones_own(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        assert talk.run("trap 'echo bye' EXIT; trap 'echo usr' USR1; IFS=/:x; true")["exit_code"] == 0
        assert "usr\n" in talk.run("kill -USR1 $$; sleep 0.05")["output"]
        assert talk.run("printf() { return 9; }; read() { return 9; }; (exit 8)")["exit_code"] == 8
        talk.run("unset -f printf read; alias exit=false echo=false cd=false")
        assert talk.run("(exit 7)", cwd="/tmp")["exit_code"] in (1, 7)
        talk.run("unalias exit echo cd")
        last = talk.run("exit 5")
        assert (last["exit_code"], "bye\n" in last["output"]) == (5, True)
        assert talk.run("echo new")["output"] == "new\n"


@pytest.mark.requirement("3.3", "F58")
@pytest.mark.parametrize("shell", [shell for shell in POSIX_SHELLS if "zsh" in shell.values])
def test_hooks_of_zsh(http: Http, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        talk.run("precmd() { echo mine $?; }; preexec() { echo before; }; precmd_functions=()")
        assert talk.run("(exit 4)")["exit_code"] == 4
        talk.wait_for("mine 4", 0)
        assert talk.run("setopt ksh_arrays err_exit prompt_subst; true")["exit_code"] == 0
        assert talk.run("echo a # not a comment when typed")["output"].startswith("before\na\n")
        talk.run("unfunction precmd preexec")
        assert talk.run("unsetopt err_exit; TRAPDEBUG() { : }; (exit 3)")["exit_code"] == 3
        assert talk.run("echo last")["output"] == "last\n"
