"""The keeper's control socket: any bytes in any pieces give replies and drops, and nothing else."""

from __future__ import annotations

import json
import socket
from typing import Any

from fuzz import seeds as recorded
from fuzz.feed import Feed, is_a, pieces
from limpet_keeper import control
from limpet_keeper.control import FIELDS, Connection, Control, Refused
from limpet_keeper.loop import READ, Loop
from limpet_keeper.settings import Settings

Json = dict[str, Any]

# Small, so that inputs of a fuzzer's size reach the bound.
FRAME_BYTES = 2048

START: Json = {
    "do": "start",
    "id": 2,
    "run": "r1",
    "argv": ["/bin/sh", "-c", "echo hi"],
    "cwd": "/",
    "env": {"PATH": "/bin", "ODD": "\udc80"},
    "pty": {"rows": 24, "cols": 80},
    "stdin": "null",
    "timeout_ms": None,
    "kill_grace_ms": 2000,
    "rlimits": {"cpu": 1, "core": 0},
    "cgroups": [{"path": "/sys/fs/cgroup/x", "settings": {"pids.max": "10"}}],
}
FRAMES: tuple[Json, ...] = (
    {"do": "hello", "id": 1, "protocol": 1, "wake": "every"},
    START,
    START | {"pty": None, "stdin": {"data": "aGkK"}},
    {"do": "write", "id": 3, "data": "aGkK", "close": True, "secret": False},
    {"do": "cancel", "id": 4, "of": 3},
    {"do": "resize", "id": 5, "rows": 1, "cols": 65535},
    {"do": "signal", "id": 6, "signal": "SIGINT", "to": "all"},
    {"do": "kill", "id": 7, "signal": "SIGKILL", "grace_ms": 0, "by": "kill"},
    {"do": "wake", "on": "state"},
)
ODD_VALUES: list[Any] = [
    *json.loads('[null, true, false, -1, 0, 1, 65536, 1.5, 1e999, NaN, "", "x", "\\ud800", [], {}, [[]], ["a", 1]]'),
    *(1 << 63, 1 << 64),
]
ODD_LINES = (b"[]", b"{}", b"", b"nul\0", b'{"do":' * 300, b"[" * 2000, b'{"id":1e999}', b"x" * 2100)


def seeds() -> list[bytes]:
    """Every request, single, all in one, and in pieces; and what is no request."""
    whole, cut, bend = b"\0" + bytes(9), b"\0\3\10\0\20\0\30\0\0\0", b"\1"
    lines = [json.dumps(frame).encode() for frame in FRAMES]
    single = [whole + line + b"\n" for line in (*lines, *ODD_LINES)]
    joined = [ahead + b"\n".join(lines) + b"\n" for ahead in (whole, cut)]
    strange = [whole + journal[:2000] for journal in recorded.journals()[:1]]
    values = [(frame, field, value) for frame in range(len(FRAMES)) for field in range(6) for value in (0, 9, 17)]
    return single + joined + strange + [bend + bytes([frame, 3, field, 1, value]) for frame, field, value in values]


def check(data: bytes) -> None:
    feed = Feed(data)
    if feed.number(2) == 0:
        choice = Feed(feed.take(9))
        stream = feed.rest()
        check_stream(pieces(stream, choice.cuts(len(stream), 4)))
    else:
        check_request(bent(feed))


def bent(feed: Feed) -> Json:
    """A request with some of its fields replaced, also deep inside, or taken away."""
    frame: Json = json.loads(json.dumps(feed.pick(FRAMES)))
    for _ in range(feed.number(4)):
        if not frame:
            break
        place: Any = frame
        key = feed.pick(keys_of(place))
        while feed.flag() and keys_of(place[key]):
            place = place[key]
            key = feed.pick(keys_of(place))
        match feed.number(4):
            case 0:
                del place[key]
            case 1 if is_a(place, dict):
                place[feed.piece(6).decode("utf-8", "surrogateescape")] = feed.pick(ODD_VALUES)
            case 2:
                place[key] = feed.piece(20).decode("utf-8", "surrogateescape")
            case _:
                place[key] = feed.pick(ODD_VALUES)
    return frame


def keys_of(place: Any) -> list[Any]:
    if is_a(place, dict):
        return list(place)
    return list(range(len(place))) if is_a(place, list) else []


def check_request(frame: Json) -> None:
    """Refused in words that name what is wrong, or checked through: then every field is of its type."""
    try:
        control.check(frame)
        if frame["do"] == "start":
            check_settings(Settings.of(frame))
    except Refused as refused:
        assert_is_clear(refused)
        return
    assert set(frame) <= {"do", "id", *FIELDS[frame["do"]]}, "an unknown field was let through"


def assert_is_clear(refused: Refused) -> None:
    assert refused.code == "invalid_argument"
    assert str(refused)


def check_settings(settings: Settings) -> None:
    texts: list[Any] = [*settings.argv, *settings.env.values(), settings.cwd, settings.stdin]
    texts += [each for group in settings.cgroups for each in (group["path"], *group["settings"].values())]
    assert settings.argv
    assert all(type(each) is str for each in texts)
    numbers = [
        settings.kill_grace_ms,
        settings.spool_max_bytes,
        settings.head_bytes,
        settings.min_free_bytes,
        settings.sync_ms,
    ]
    numbers += [*settings.rlimits.values(), *(settings.pty or ())]
    assert all(type(each) is int and each >= 0 for each in numbers)
    assert settings.timeout_ms is None or (type(settings.timeout_ms) is int and settings.timeout_ms >= 0)
    assert settings.stdin in ("null", "open", "data")
    assert (settings.stdin == "data") == (settings.stdin_data is not None)
    assert settings.pty is None or settings.stdin == "null"


def handle(connection: Connection, request: Json) -> Json | None:
    """Stands in for the keeper: answers each request at once, but for `start` with what its settings are."""
    if request["do"] == "start":
        check_settings(Settings.of(request))
    if request["do"] == "wake" and request["on"] in control.WAKES:
        connection.wake = request["on"]
        connection.control.tell(is_quiet=True)
    return {"did": request["do"]}


def check_stream(sent: list[bytes]) -> None:
    """One reply to each frame, in order, under its id; after what is no object one refusal and the end."""
    loop = Loop()
    dropped: list[Connection] = []
    keeper = Control(loop, handle, dropped.append, lambda: 0)
    theirs, ours = socket.socketpair()
    usual, control.MAX_FRAME_BYTES = control.MAX_FRAME_BYTES, FRAME_BYTES
    try:
        connection = Connection(theirs, keeper)
        keeper.connections.append(connection)
        loop.watch(theirs.fileno(), READ, connection.on_event)
        ours.setblocking(False)
        received = b""
        for piece in sent:
            with_rest = memoryview(piece)
            while with_rest and not dropped:
                with_rest = with_rest[ours.send(with_rest) :]
                received += turn(loop, ours)
        received += turn(loop, ours)
        check_replies(b"".join(sent), received, bool(dropped))
        assert connection.unread == b"" or not dropped or theirs.fileno() < 0
    finally:
        control.MAX_FRAME_BYTES = usual
        for each in list(keeper.connections):
            keeper.drop(each)
        theirs.close()
        ours.close()


def turn(loop: Loop, ours: socket.socket) -> bytes:
    """Lets the keeper's side do all it has to do, and reads what it sent."""
    received = b""
    while True:
        heard = loop.turn(0)
        try:
            while more := ours.recv(1 << 16):
                received += more
        except (BlockingIOError, ConnectionResetError):
            pass
        if not heard:
            return received


def check_replies(sent: bytes, received: bytes, is_dropped: bool) -> None:
    assert received == b"" or received.endswith(b"\n"), "half a reply"
    replies = [reply for reply in map(strictly, received.splitlines()) if "wake" not in reply]
    *lines, rest = sent.split(b"\n")
    expected: list[Json | None] = []
    for line in lines:
        expected.append(parsed(line))
        if expected[-1] is None:
            break
    for reply, frame in zip(replies, expected, strict=False):
        check_reply(reply, frame)
    if max(map(len, (*lines, rest))) <= FRAME_BYTES:
        assert len(replies) == len(expected), f"{len(replies)} replies to {len(expected)} frames"
        assert is_dropped == (None in expected), "dropped without a reason, or kept against it"
    else:  # a frame past the bound is refused once, and is the last, unless it came whole in one read
        assert is_dropped or len(rest) <= FRAME_BYTES
        assert len(replies) <= len(expected) + is_dropped


def strictly(line: bytes) -> Json:
    """A reply, which must be JSON as everybody understands it."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(line, parse_constant=refuse)


def check_reply(reply: Json, frame: Json | None) -> None:
    if frame is None or "id" not in frame:
        assert reply["re"] is None, "an answer to an id that nobody gave"
    elif type(frame["id"]) is int:
        assert reply["re"] == frame["id"], "an answer under another id"
    else:  # a fraction may be taken or refused; what is no number can not be repeated
        assert reply["re"] is None or (type(frame["id"]) is float and reply["re"] == frame["id"])
    assert reply["ok"] or (reply["error"] and reply["message"]), "a refusal without words"
    if frame is None or type(frame.get("id", 0)) is int:
        assert reply["ok"] == (frame is not None and is_fit(frame)), "the connection and the check disagree"


def parsed(line: bytes) -> Json | None:
    try:
        frame: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return frame if is_a(frame, dict) else None


def is_fit(frame: Json) -> bool:
    """What the check says of it, by itself."""
    try:
        control.check(frame)
        if frame["do"] == "start":
            Settings.of(frame)
    except Refused:
        return False
    return True
