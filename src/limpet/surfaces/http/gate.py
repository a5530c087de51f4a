"""The one gate: what every request and every upgrade passes before any route hears of it."""

import hmac
import logging
import re
import time
from collections.abc import Iterable
from typing import Any, Final

from limpet.model.errors import Refusal
from limpet.model.operation import Caller
from limpet.surfaces.http.head import (
    BODY_MAX_BYTES,
    TOKEN_PROTOCOL,
    Headers,
    caller_of,
    too_large,
    weigh,
)

WRONG_TOKENS_AT_ONCE: Final = 10_000
WRONG_TOKENS_A_S: Final = 100.0
"""Beyond these, wrong tokens are told to slow down. A right one is never: nobody can lock its owner out."""
_LOG_EVERY_S: Final = 60.0
# No name of the public DNS has one label, so no page can have its own name point at whoever forwards the socket.
_LOCAL_HOST: Final = re.compile(rb"(?:[a-z0-9_-]*|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_PORT: Final = re.compile(rb":\d+$")
_log: Final = logging.getLogger("limpet.http")

Names = frozenset[bytes] | None
"""What a listener is called, as a Host header says it; None where only the Unix socket leads."""


class Gate:
    """Judges heads: Host, Origin, token, content type, in this order. It knows no route but those that need no token.

    Without a `token` only the Unix socket leads in, whose kernel says who is at the other end.
    """

    def __init__(
        self,
        *,
        token: str | None = None,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        open_paths: Iterable[str] = (),
    ) -> None:
        self._token: Final = None if token is None else token.encode()
        self._hosts: Final = frozenset(host.lower().encode() for host in hosts)
        self._origins: Final = frozenset(origin.lower().encode() for origin in origins)
        self._open: Final = frozenset(path.encode() for path in open_paths)
        self._names: Final[dict[tuple[Any, ...], frozenset[bytes]]] = {}
        self._wrong: Final = _Wrong()

    def names(self, address: tuple[Any, ...]) -> frozenset[bytes]:
        """What may stand in Host on a connection to this address of ours; `localhost` only where it leads to us."""
        known = self._names.get(address)
        if known is None:
            with_port = {host + b":%d" % address[1] for host in self._hosts if not _PORT.search(host)}
            known = self._names[address] = names_of(address) | self._hosts | with_port
        return known

    def admit(self, method: bytes, target: bytes, headers: Headers, names: Names, *, upgrade: bool = False) -> Caller:
        """Who calls; everybody else is refused. Nothing was done for the request yet, and nothing is for a refused one.

        `names` are those of the listener; `upgrade` says that the request asks to leave HTTP behind.
        """
        if target[:1] != b"/":
            raise Refusal("invalid_argument", "the request's target must be a path: this is no proxy")
        found = weigh(headers)
        host = found.get(b"host")
        if host is None:
            raise Refusal("invalid_argument", "the request has no Host header: send it", field="Host")
        host = host.lower()
        if names is None:
            if not _LOCAL_HOST.fullmatch(host):
                raise _wrong_host()
        elif host not in names:
            raise _wrong_host()
        if b"origin" in found:
            if not self._is_ours(found[b"origin"].lower(), host, names):
                raise _wrong_origin()
        elif found.get(b"sec-fetch-site", b"none").lower() not in (b"none", b"same-origin"):
            raise _wrong_origin()
        if names is not None and not (method in (b"GET", b"HEAD") and target.partition(b"?")[0] in self._open):
            self._check_token(found, upgrade=upgrade)
        _check_body(method, found, upgrade=upgrade)
        return caller_of(found, is_local=names is None)

    def _is_ours(self, origin: bytes, host: bytes, names: Names) -> bool:
        scheme, _, place = origin.partition(b"://")
        is_same = scheme == b"http" and (place == host if names is None else place in names)
        return is_same or origin in self._origins

    def _check_token(self, found: dict[bytes, bytes], *, upgrade: bool) -> None:
        given = _given_token(found, upgrade=upgrade)
        if given is None:
            raise Refusal(
                "unauthorized", "send the token of the home as `Authorization: Bearer TOKEN`", reason="no_token"
            )
        if self._token is None or not hmac.compare_digest(given, self._token):
            raise self._wrong.another()


class _Wrong:
    """Counts wrong tokens: what they are answered, and a line in the log now and then, without them."""

    def __init__(self) -> None:
        self._left = float(WRONG_TOKENS_AT_ONCE)
        self._seen_at = time.monotonic()
        self._count = 0
        self._logged_at = 0.0

    def another(self) -> Refusal:
        """One more; the refusal of it."""
        now = time.monotonic()
        self._left = min(WRONG_TOKENS_AT_ONCE, self._left + (now - self._seen_at) * WRONG_TOKENS_A_S)
        self._seen_at = now
        self._count += 1
        if now - self._logged_at > _LOG_EVERY_S:
            _log.warning("refused %d requests with a wrong token", self._count)
            self._logged_at, self._count = now, 0
        if self._left < 1:
            return Refusal("limit_exceeded", "too many wrong tokens: look the token up", reason="wrong_tokens")
        self._left -= 1
        message = "that is not the token of this home: read it from the file `token` there"
        return Refusal("unauthorized", message, reason="wrong_token")


def names_of(address: tuple[Any, ...]) -> frozenset[bytes]:
    """The names of one address that nobody else can have: its number, and `localhost` for a loopback one."""
    ip, port = str(address[0]), int(address[1])
    ip = ip.removeprefix("::ffff:") if "." in ip else ip
    hosts = [f"[{ip}]" if ":" in ip else ip]
    if ip.startswith("127.") or ip == "::1":
        hosts.append("localhost")
    named = {f"{host}:{port}".encode() for host in hosts}
    return frozenset(named | {host.encode() for host in hosts} if port == 80 else named)


def _given_token(found: dict[bytes, bytes], *, upgrade: bool) -> bytes | None:
    scheme, _, token = found.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        return token.strip()
    if upgrade and found.get(b"upgrade", b"").lower() == b"websocket":
        for offered in found.get(b"sec-websocket-protocol", b"").split(b","):
            if offered.strip().startswith(TOKEN_PROTOCOL):
                return offered.strip().removeprefix(TOKEN_PROTOCOL)
    return None


def _check_body(method: bytes, found: dict[bytes, bytes], *, upgrade: bool) -> None:
    length = found.get(b"content-length", b"0")
    has_body = length.strip(b"0") != b"" or b"transfer-encoding" in found
    if upgrade and (has_body or method != b"GET"):
        raise Refusal("invalid_argument", "a request to upgrade is a GET without a body")
    if has_body or method == b"POST":  # the one that a page may send anywhere without being asked about
        kind = found.get(b"content-type", b"")
        if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != b"application/json":
            message = "the body must be JSON: send it with the header Content-Type: application/json"
            raise Refusal("invalid_argument", message, field="Content-Type")
        if len(length) > 12 or int(length) > BODY_MAX_BYTES:
            raise too_large()


def _wrong_host() -> Refusal:
    message = "that Host is not this server's: use the address it gave as `url`, or list the name in `http.hosts`"
    return Refusal("policy_denied", message, reason="wrong_host")


def _wrong_origin() -> Refusal:
    message = "pages from elsewhere may not call: list the page's origin in `http.origins` if it is yours"
    return Refusal("policy_denied", message, reason="wrong_origin")
