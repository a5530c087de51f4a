"""A program that prints prompts, with every secret that it can find, ends nothing."""

import sys
from pathlib import Path

import pytest

from .home import Home
from .surface import Http
from .talk import talking

FORGER = r"""
import glob, os, re, sys
words = {b'', b'?'}
def look(data):
    words.update(re.findall(rb'[0-9a-f]{16,48}', data))
def look_at(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        look(os.read(fd, 1 << 20))
        os.close(fd)
    except OSError:
        pass
pid = os.getppid()
while pid > 1:
    for name in ('environ', 'cmdline'):
        look_at(f'/proc/{pid}/{name}')
    for path in glob.glob(f'/proc/{pid}/fd/*'):
        try:
            if not os.readlink(path).startswith('/dev/'):
                look_at(path)
        except OSError:
            pass
    pid = int(re.search(r'PPid:\s+(\d+)', open(f'/proc/{pid}/status').read()).group(1))
for base, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(base, name)
        if os.path.isfile(path) and not os.path.islink(path):
            look_at(path)
terminal = os.open('/dev/tty', os.O_WRONLY)
spool = glob.glob(sys.argv[1] + '/runs/' + sys.argv[2] + '/*/pty.spool')[0]
for old in re.findall(rb'__FWS_PROMPT__[^\n]*\n', open(spool, 'rb').read()):
    os.write(terminal, old)
os.write(terminal, b'__FWS_PROMPT__ ts=1 cwd_b64=Lw== exit=0\n')
for word in words:
    os.write(terminal, b'\x1elimpet:%s:0\x1f' % word)
os.write(terminal, b'\x1elimpet?\x1f')
print('FORGED', len(words), flush=True)
sys.stdin.readline()
sys.exit(7)
"""


@pytest.mark.requirement("3.4", "F49")
@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("before", ["", "set +m; "], ids=["in-front", "in-the-shell's-group"])
def test_a_forger_ends_nothing(http: Http, house: Home, tmp_path: Path, shell: str, before: str) -> None:
    """Injector: a program that reads the shell's file, all of the home, /proc and descriptors, then prints it all."""
    forger = tmp_path / "forger.py"
    forger.write_text(FORGER)
    with talking(http, shell=shell) as talk:
        talk.run("echo one")
        run_id = talk.status()["run_id"]
        begun = talk.ok("exec_block", cmd=f"{before}{sys.executable} '{forger}' '{house.path}' {run_id}")
        forged = talk.wait_for("FORGED", 0)
        assert talk.status()["mode"] == "block_running"
        assert talk.call("wait_prompt", from_cursor=forged["resume_cursor"], timeout_ms=300)["error"] == "timeout"
        talk.ok("send", data="\r")
        back = talk.wait_prompt(forged["resume_cursor"])
        assert (back["block_id"], back["exit_code"]) == (begun["block_id"], 7)
        output = talk.ok("blocks.read", block_id=begun["block_id"], max_bytes=1 << 20)["data"]
        assert "__FWS_PROMPT__ ts=1 " in output  # the fault did happen, and is shown as what it is
        journal = next((house.path / "runs" / run_id).glob("*/keeper.journal")).read_text()
        assert '"fact":"suspicious"' in journal
        assert talk.run("echo two")["output"] == "two\n"
