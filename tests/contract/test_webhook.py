"""The webhook sink posts each hit, signed, again until it is taken, bounded, and slows no run (1.9, 2.4)."""

import json
from collections.abc import Callable, Iterator

import pytest

from .hits import watch
from .home import Home, read_line, until
from .inbox import Receiver, taken, webhook_config
from .items import SNIPPET_MAX_CHARS
from .remains import holding
from .surface import Http

NewHome = Callable[..., Home]
SECRET = "sesame-4c1d9e-0b7a-long-enough"
SIGNED = f'secret = "{SECRET}"'
CONNECTIONS_MAX = 16


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def served(new_home: NewHome, receiver: Receiver) -> Http:
    home = new_home(webhook_config(receiver.url, SECRET))
    home.start()
    return Http(home)


def hit(http: Http, event: str, command: str = "echo NEEDLE") -> str:
    run_id = http.spawn(command, watch=[watch("NEEDLE", event)], session_id=f"of-{event}")
    http.finish(run_id)
    return run_id


@pytest.mark.requirement("1.9")
def test_a_hit_is_posted_and_signed(new_home: NewHome, receiver: Receiver) -> None:
    home = new_home(webhook_config(receiver.url, SECRET))
    home.start()
    http = Http(home)
    run_id = hit(http, "first", "seq 1 5000; echo 'é NEEDLE'")
    until(lambda: len(receiver.of_event("first")) > 0, "the post")
    post = receiver.of_event("first")[0]
    told = post.told
    assert (told["run_id"], told["event"]) == (run_id, "first")
    assert isinstance(told["id"], str)
    assert "NEEDLE" in json.dumps(told)
    assert told["snippet"].endswith("é NEEDLE\n") or told["snippet"].endswith("NEEDLE")
    assert len(told["snippet"]) <= SNIPPET_MAX_CHARS
    assert post.headers["Content-Type"].startswith("application/json")
    assert post.signed_with(SECRET), post.headers
    assert not post.signed_with(SECRET + "x")
    # The secret itself is in the config alone.
    assert SECRET not in str(post.headers)
    assert SECRET.encode() not in post.body
    assert holding(home.path, SECRET) == [home.path / "config.toml"]
    # The default sink is not replaced by it.
    (message,), _ = taken(http, "of-first", 1)
    assert message["id"] == told["id"]


@pytest.mark.requirement("1.9", "1.8")
def test_what_is_refused_is_posted_again(new_home: NewHome, receiver: Receiver) -> None:
    """The same hit with the same id, until it is taken, and then no more."""
    receiver.answer = lambda _: 503 if sum(post.told.get("event") == "again" for post in receiver.posts) < 2 else 200
    http = served(new_home, receiver)
    hit(http, "again")
    until(lambda: any(post.status == 200 for post in receiver.of_event("again")), "a post that is taken", 60)
    posts = receiver.of_event("again")
    assert len({post.told["id"] for post in posts}) == 1
    assert posts[0].status == 503
    assert all(post.signed_with(SECRET) for post in posts)
    hit(http, "behind")
    until(lambda: len(receiver.of_event("behind")) > 0, "the next one's post")
    assert [post.status for post in receiver.of_event("again")].count(200) == 1


@pytest.mark.requirement("1.9", "1.8", "1.11")
def test_a_post_is_not_forgotten_in_a_crash(new_home: NewHome, receiver: Receiver) -> None:
    """Injector: SIGKILL to the daemon, before any post was taken."""
    receiver.answer = lambda _: 503
    home = new_home(webhook_config(receiver.url, SECRET))
    home.start()
    hit(Http(home), "kept")
    until(lambda: len(receiver.of_event("kept")) > 0, "the first try")
    home.kill_daemon()
    assert all(post.status == 503 for post in receiver.of_event("kept"))
    receiver.answer = lambda _: 200
    home.start()
    until(lambda: any(post.status == 200 for post in receiver.of_event("kept")), "a post that is taken", 60)
    assert len({post.told["id"] for post in receiver.of_event("kept")}) == 1


@pytest.mark.requirement("1.9")
def test_a_receiver_that_hangs_slows_nothing_and_is_not_flooded(new_home: NewHome, receiver: Receiver) -> None:
    """300 hits while it does not answer; once it does, each of them arrives."""
    receiver.hang()
    http = served(new_home, receiver)
    for turn in range(3):
        run_id = http.spawn(
            "for n in $(seq 100); do echo NEEDLE $n; done", watch=[watch("NEEDLE [0-9]+\n", f"turn-{turn}")]
        )
        assert http.finish(run_id, timeout_ms=20_000)["exit_code"] == 0
        assert len(http.bytes_of(run_id)) > 800
    until(lambda: receiver.open_now > 0, "the first post")
    assert receiver.most_open <= CONNECTIONS_MAX
    receiver.go_on()

    def arrived() -> bool:
        return all(len({post.told["id"] for post in receiver.of_event(f"turn-{turn}")}) == 100 for turn in range(3))

    until(arrived, "all 300", 60)
    assert receiver.most_open <= CONNECTIONS_MAX


@pytest.mark.requirement("1.9")
def test_a_receiver_that_is_not_there_slows_nothing(new_home: NewHome) -> None:
    with Receiver() as receiver:
        url = receiver.url
    home = new_home(webhook_config(url, SECRET))
    home.start()
    run_id = hit(Http(home), "lost")
    (message,), _ = taken(Http(home), "of-lost", 1)
    assert message["run_id"] == run_id


@pytest.mark.requirement("1.9", "2.4")
@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ([SIGNED], "url"),
        (["url = 5", SIGNED], "url"),
        (['url = "ftp://127.0.0.1/"', SIGNED], "url"),
        (['url = "http://127.0.0.1/"'], "secret"),
        (['url = "http://127.0.0.1/"', 'secret = ""'], "secret"),
        (['url = "http://127.0.0.1/"', SIGNED, "nosuch = 1"], "nosuch"),
    ],
    ids=str,
)
def test_a_wrong_webhook_is_refused_at_start(new_home: NewHome, lines: list[str], field: str) -> None:
    home = new_home("\n".join(["[[sinks.webhook]]", *lines, ""]))
    process = home.popen("serve", "--ready-json")
    assert read_line(process) == b"", "it started with a wrong value"
    assert process.wait(60) != 0
    assert process.stderr is not None
    told = process.stderr.read().decode()
    assert field in told, told
    assert "Traceback" not in told, told
