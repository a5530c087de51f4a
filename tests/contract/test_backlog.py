"""Hits wait in their session's backlog until somebody has taken and acknowledged them (1.9)."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from .fifos import Gate
from .hits import names, watch
from .home import Answer, Home, until
from .inbox import acknowledge, drained, lease_config, take, taken
from .items import SNIPPET_MAX_CHARS
from .remains import drop_database
from .surface import Http, Surface

NewHome = Callable[..., Home]
NO_LEASE = ("not_found", "gone", "conflict")
WORDS = "word-[0-9]+;"


def said(surface: Surface, session_id: str, last: int, first: int = 1) -> str:
    """A run of that session that is over and has said so many words, each of them a hit."""
    run_id = surface.spawn(
        f'for n in $(seq {first} {last}); do echo "a word-$n; here"; done',
        session_id=session_id,
        watch=[watch(WORDS, "word")],
    )
    surface.finish(run_id)
    return run_id


def spoken(messages: Sequence[Answer]) -> list[int]:
    """Which words the messages tell of, in their order."""
    found = [re.findall(r"word-([0-9]+);", message["text"]) for message in messages]
    assert all(numbers for numbers in found), messages
    return [int(numbers[0]) for numbers in found]


@pytest.mark.requirement("1.9", "0.2")
def test_a_hit_is_a_message_of_its_session(surface: Surface) -> None:
    session = f"backlog-{surface.name}"
    watchers = [watch("ready on [0-9]+;", "up"), watch("nosuch", "never")]
    run_id = surface.spawn("echo first; echo 'ready on 80; é'", session_id=session, watch=watchers)
    surface.finish(run_id)
    (message,), (lease,) = taken(surface, session, 1)
    assert (message["run_id"], message["event"]) == (run_id, "up")
    assert "ready on 80;" in message["text"]
    assert "first\nready on 80; é\n".startswith(message["snippet"])
    assert "ready on 80;" in message["snippet"]
    facts = surface.facts(run_id)
    assert facts["created_at"] <= message["ts"]
    # Leased, so nobody else gets it; acknowledged, so it is over.
    assert take(surface, session)[0] == []
    acknowledge(surface, lease)
    assert take(surface, session)[0] == []


@pytest.mark.requirement("1.9")
def test_each_session_has_its_own(http: Http) -> None:
    one, two = said(http, "apart-1", 2), said(http, "apart-2", 3)
    alone = http.spawn("echo 'word-7;'", watch=[watch(WORDS, "word")])
    http.finish(alone)
    for session, run_id, number in (
        ("apart-1", one, 2),
        ("apart-2", two, 3),
        (http.facts(alone)["session_id"], alone, 1),
    ):
        messages, leases = taken(http, session, number)
        assert {message["run_id"] for message in messages} == {run_id}
        acknowledge(http, *leases)


@pytest.mark.requirement("1.9")
def test_messages_come_in_order_and_a_few_at_a_time(http: Http) -> None:
    """Across two runs of a session; what is not taken yet stays for the next call."""
    said(http, "ordered", 5)
    said(http, "ordered", 9, 6)
    assert spoken(drained(http, "ordered", 9, most=2)) == list(range(1, 10))


@pytest.mark.requirement("1.9", "1.4")
def test_the_snippet_is_the_tail_of_the_output(http: Http, gate: Gate) -> None:
    run_id = http.spawn(f"seq 1 5000; echo NEEDLE; {gate.wait}", session_id="tailed", watch=[watch("NEEDLE\n")])
    (message,), (lease,) = taken(http, "tailed", 1)
    whole = "".join(f"{n}\n" for n in range(1, 5001)) + "NEEDLE\n"
    assert message["snippet"] == whole[-SNIPPET_MAX_CHARS:]
    acknowledge(http, lease)
    gate.open()
    http.finish(run_id)


@pytest.mark.requirement("1.9")
def test_no_message_is_handed_out_twice_at_once(http: Http) -> None:
    said(http, "shared", 60)

    def some(_: int) -> list[Answer]:
        return take(http, "shared", 10)[0]

    with ThreadPoolExecutor(8) as pool:
        at_once = [message for messages in pool.map(some, range(16)) for message in messages]
    rest, _ = taken(http, "shared", 60 - len(at_once))
    assert sorted(spoken(at_once + rest)) == list(range(1, 61))


@pytest.mark.requirement("1.9")
def test_what_is_not_acknowledged_comes_back(new_home: NewHome) -> None:
    """An old lease no longer counts then; what is acknowledged stays away while another message comes and goes."""
    home = new_home(lease_config(1))
    home.start()
    http = Http(home)
    said(http, "lent", 3)
    leases: dict[str, list[str]] = {}

    def lent_twice() -> bool:
        messages, lease = take(http, "lent")
        for message in messages:
            leases.setdefault(message["id"], []).append(str(lease))
        return len(leases) == 3 and all(len(of_one) >= 2 for of_one in leases.values())

    until(lent_twice, "three messages to come back")
    for of_one in leases.values():
        assert len(of_one) == len(set(of_one)), leases
    expired = next(iter(leases.values()))[0]
    refusal = http.call("backlog.ack", {"lease": expired})
    assert not refusal["ok"], refusal
    assert refusal["error"] in NO_LEASE, refusal
    assert sorted(spoken(drained(http, "lent", 3))) == [1, 2, 3]
    leases.clear()
    said(http, "lent", 4, 4)

    def another_came_back() -> bool:
        messages, lease = take(http, "lent")
        assert set(spoken(messages)) <= {4}, messages
        leases.setdefault("4", []).extend([str(lease)] * len(messages))
        return len(leases["4"]) >= 2

    until(another_came_back, "the fourth message to come back")


@pytest.mark.requirement("1.9", "1.11", "1.12", "F30")
@pytest.mark.parametrize("lost", ["daemon", "database"])
def test_the_backlog_lasts(new_home: NewHome, lost: str) -> None:
    """Injectors: SIGKILL to the daemon, and its database deleted. What was acknowledged stays so, the rest comes."""
    home = new_home()
    home.start()
    run_id = said(Http(home), "lasting", 6)
    done = drained(Http(home), "lasting", 2, most=1)
    home.kill_daemon()
    if lost == "database":
        drop_database(home)
    home.start()
    messages, leases = taken(Http(home), "lasting", 4)
    assert spoken(done + messages) == [1, 2, 3, 4, 5, 6]
    assert len({message["id"] for message in done + messages}) == 6
    assert {message["run_id"] for message in messages} == {run_id}
    acknowledge(Http(home), *leases)
    home.kill_daemon()
    home.start()
    assert take(Http(home), "lasting")[0] == []


@pytest.mark.requirement("1.9", "1.8", "1.11")
def test_a_hit_without_a_daemon_is_a_message_later(new_home: NewHome, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon; the hit and the end of the run come while there is none."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(f"{gate.wait} echo 'word-1;'", session_id="later", watch=[watch(WORDS, "word")])
    home.kill_daemon()
    gate.open()
    home.start()
    Http(home).finish(run_id)
    (message,), _ = taken(Http(home), "later", 1)
    assert (message["run_id"], message["event"]) == (run_id, "word")


@pytest.mark.requirement("1.9", "0.3", "0.4")
@pytest.mark.parametrize(
    ("op", "params", "field"),
    [
        ("backlog.take", {"max": 1}, "session_id"),
        ("backlog.take", {"session_id": "../x", "max": 1}, "session_id"),
        ("backlog.take", {"session_id": 5, "max": 1}, "session_id"),
        ("backlog.take", {"session_id": "a", "max": 0}, "max"),
        ("backlog.take", {"session_id": "a", "max": -1}, "max"),
        ("backlog.take", {"session_id": "a", "max": "1"}, "max"),
        ("backlog.take", {"session_id": "a", "max": True}, "max"),
        ("backlog.take", {"session_id": "a", "max": 1, "lease": "x"}, "lease"),
        ("backlog.ack", {}, "lease"),
        ("backlog.ack", {"lease": 5}, "lease"),
        ("backlog.ack", {"lease": "a", "session_id": "a"}, "session_id"),
    ],
    ids=str,
)
def test_the_backlog_is_strict(http: Http, op: str, params: Answer, field: str) -> None:
    assert names(http.refused(op, params, "invalid_argument"), field)


@pytest.mark.requirement("1.9", "0.3")
def test_a_lease_that_there_never_was(surface: Surface) -> None:
    refusal = surface.call("backlog.ack", {"lease": "nosuch"})
    assert not refusal["ok"], refusal
    assert refusal["error"] in NO_LEASE, refusal
