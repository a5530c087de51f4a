"""A listening TCP socket: for this machine alone, unless somebody says that others may come."""

import ipaddress
import socket
from typing import Any, Final

from limpet.model.errors import Refusal

BACKLOG: Final = 4096


def listen_tcp(host: str, port: int, *, allow_remote: bool = False) -> socket.socket:
    """A socket that listens there; port 0 picks a free one. A host that others can reach is refused unless allowed."""
    family, address = _resolve(host, port)
    if not allow_remote and not ipaddress.ip_address(address[0].partition("%")[0]).is_loopback:
        raise Refusal(
            "policy_denied",
            f"{host} can be reached from other machines, and whoever has the token runs commands as you: "
            "add --allow-remote (or `http.allow_remote`) if that is meant",
            reason="remote_not_allowed",
            field="host",
        )
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        message = f"cannot listen on {host} port {port}: {error.strerror}; choose another, or port 0"
        raise Refusal("unavailable", message, reason="cannot_listen", field="port") from None
    except BaseException:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket, host: str) -> str:
    """Where somebody on this machine reaches it: by the host that was asked for, unless that stands for all of them."""
    address = listener.getsockname()
    if ipaddress.ip_address(address[0].partition("%")[0]).is_unspecified:
        host = "::1" if listener.family == socket.AF_INET6 else "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{address[1]}"


def _resolve(host: str, port: int) -> tuple[int, Any]:
    if not host:
        raise Refusal("invalid_argument", "the host is empty: name one, 127.0.0.1 say", field="host")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is no name"
        raise Refusal("invalid_argument", f"{host!r} leads to no address: {why}", field="host") from None
    family, _, _, _, address = sorted(found, key=lambda each: each[0] != socket.AF_INET)[0]
    return family, address
