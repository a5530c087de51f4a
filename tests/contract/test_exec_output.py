"""Output as events: windows, chunks, what is dropped, as configured; what a wrong setting says (2.4, 2.5, 2.7)."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from .gateway import Gateway
from .home import Answer, Home
from .surface import Http

BODY = "codex() {{ {0}; }}; codex"


def outputs(events: Sequence[Answer], stream: str = "stdout") -> list[Answer]:
    told = [event["payload"] for event in events if event["event"] == "exec.output"]
    return [payload for payload in told if payload["stream"] == stream]


def add_up(chunks: Sequence[Answer], total: int, max_bytes: int) -> int:
    """The chunks and what was dropped, in their order, are the stream; the answer is how much was dropped."""
    at = dropped = 0
    for chunk in chunks:
        size = len(chunk["output"].encode())
        assert size <= max_bytes, (size, max_bytes)
        at += chunk["droppedBytes"]
        dropped += chunk["droppedBytes"]
        assert chunk["offset"] == at, (chunk["offset"], at)
        assert chunk["truncated"] is (chunk["droppedBytes"] > 0), chunk
        at += size
    assert at == total
    return dropped


@pytest.fixture
def serve(new_home: Callable[..., Home]) -> Callable[[str], Home]:
    def made(config: str) -> Home:
        home = new_home(config)
        home.start()
        return home

    return made


@pytest.mark.requirement("2.5")
def test_a_burst_comes_in_chunks_within_the_limit(serve: Callable[[str], Home]) -> None:
    home = serve("")
    with Gateway(home) as gateway:
        command = BODY.format("head -c 20000 /dev/zero | tr '\\0' x; head -c 5000 /dev/zero | tr '\\0' y >&2")
        run_id = Http(home).ok("shell", {"command": command})["run_id"]
        events = gateway.of(run_id)
    assert add_up(outputs(events), 20_000, 4096) == 0
    assert add_up(outputs(events, "stderr"), 5_000, 4096) == 0


@pytest.mark.requirement("2.5")
def test_one_flush_for_each_window(serve: Callable[[str], Home]) -> None:
    home = serve("[hooks.exec]\noutputThrottleMs = 400\n")
    with Gateway(home) as gateway:
        command = BODY.format("for n in $(seq 100); do echo line $n; echo e >&2; sleep 0.02; done")
        run_id = Http(home).ok("shell", {"command": command})["run_id"]
        events = gateway.of(run_id)
    chunks = outputs(events)
    assert "".join(chunk["output"] for chunk in chunks) == "".join(f"line {n}\n" for n in range(1, 101))
    length_ms = events[-1]["payload"]["durationMs"]
    by_time: dict[str, list[int]] = defaultdict(list)
    for chunk in [*chunks, *outputs(events, "stderr")]:
        by_time[chunk["stream"]].append(chunk["ts"])
    for stamps in by_time.values():
        # One at each window's end, and what was left at the end of the run.
        assert 2 <= len(stamps) <= length_ms / 400 + 2, (stamps, length_ms)
        assert all(later - earlier >= 350 for earlier, later in pairwise(stamps[:-1])), stamps


@pytest.mark.requirement("0.5", "2.5")
def test_chunks_are_cut_at_characters(serve: Callable[[str], Home]) -> None:
    home = serve("[hooks.exec]\noutputMaxChunkBytes = 16\noutputThrottleMs = 1\n")
    text = "aé€😀" * 50
    with Gateway(home) as gateway:
        run_id = Http(home).ok("shell", {"command": BODY.format(f"printf %s '{text}'")})["run_id"]
        chunks = outputs(gateway.of(run_id))
    assert add_up(chunks, len(text.encode()), 16) == 0
    assert "".join(chunk["output"] for chunk in chunks) == text


@pytest.mark.requirement("0.5", "2.5", "9.events")
def test_bytes_that_are_no_text_are_counted_as_they_are(serve: Callable[[str], Home]) -> None:
    home = serve("")
    with Gateway(home) as gateway:
        run_id = Http(home).ok("shell", {"command": BODY.format("printf 'a\\377b\\303'; printf 'end' >&2")})["run_id"]
        events = gateway.of(run_id)
    assert "".join(chunk["output"] for chunk in outputs(events)) == "a\ufffdb\ufffd"
    assert outputs(events)[0]["offset"] == 0
    assert outputs(events, "stderr")[0]["output"] == "end"


@pytest.mark.requirement("0.7", "2.5", "9.events")
def test_what_does_not_fit_is_dropped_from_its_front_and_said(serve: Callable[[str], Home]) -> None:
    """Injector: far more output in one window than any buffer holds."""
    home = serve("[hooks.exec]\noutputThrottleMs = 60000\n")
    total = 30_000_000
    with Gateway(home) as gateway:
        command = BODY.format(f"head -c {total} /dev/zero | tr '\\0' x; printf END")
        run_id = Http(home).ok("shell", {"action": "spawn", "command": command})["run_id"]
        chunks = outputs(gateway.of(run_id))
    dropped = add_up(chunks, total + 3, 4096)
    assert dropped > 0
    assert chunks[-1]["output"].endswith("END")


@pytest.mark.requirement("2.4", "2.7")
def test_events_can_be_turned_off(serve: Callable[[str], Home]) -> None:
    home = serve("[hooks.exec]\nemitEvents = false\n")
    with Gateway(home) as gateway:
        assert Http(home).ok("shell", {"command": BODY.format("echo hi")})["stdout"] == "hi\n"
        gateway.call("daemon.status")
        assert gateway.events == []


@pytest.mark.requirement("2.1", "2.4")
def test_a_whitelist_of_ones_own(serve: Callable[[str], Home]) -> None:
    home = serve('[hooks.exec]\ncommandWhitelist = ["/usr/local/bin/MyTool", "echo"]\n')
    http = Http(home)
    with Gateway(home) as gateway:
        unseen = http.ok("shell", {"command": "codex"})["run_id"]
        for command, name in (("mytool x", "mytool"), ("/opt/MYTOOL", "mytool"), ("cd / && echo hi", "echo")):
            events = gateway.of(http.ok("shell", {"command": command})["run_id"])
            assert {event["payload"]["commandName"] for event in events} == {name}
        assert not [event for event in gateway.events if event["payload"]["execId"] == unseen]


@pytest.mark.requirement("2.4")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("emitEvents", '"yes"'),
        ("emitEvents", "1"),
        ("commandWhitelist", '"codex"'),
        ("commandWhitelist", "[1]"),
        ("outputThrottleMs", "-1"),
        ("outputThrottleMs", '"150"'),
        ("outputThrottleMs", "1.5"),
        ("outputMaxChunkBytes", "0"),
        ("outputMaxChunkBytes", "true"),
        ("nosuch", "1"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_key(new_home: Callable[..., Home], key: str, value: str) -> None:
    home = new_home(f"[hooks.exec]\n{key} = {value}\n")
    refused = home.limpet("serve", "--ready-json", timeout_s=60)
    assert refused.returncode not in (0, None), refused
    assert b"hooks.exec" in refused.stderr, refused
    assert key.encode() in refused.stderr, refused
    assert b"Traceback" not in refused.stderr, refused
    assert len(refused.stderr.strip()) > len(f"hooks.exec.{key}") + 20, "what is allowed is said"
