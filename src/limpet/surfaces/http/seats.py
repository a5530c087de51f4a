"""Who may sit down: how many connections there may be, so that descriptors are left for runs and the owner's socket."""

import resource
import socket
from typing import Final

# So few descriptors are left to runs: who comes now is told so as soon as it asks, and the last ones before that.
FEW_DESCRIPTORS: Final = 16
LAST_DESCRIPTORS: Final = 6
_UNANSWERED_MS: Final = 12_000
"""How long a peer may leave what was sent unacknowledged: a network that went down is noticed within 15 s."""
_PROBES: Final = ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 3), (socket.TCP_KEEPCNT, 3))


class Seats:
    """The connections of one server."""

    def __init__(self, max_remote: int) -> None:
        self._max_remote: Final = min(max_remote, _descriptors() // 2)
        self._remote = 0

    def take_remote(self, peer: socket.socket) -> bool:
        """For a TCP connection; false when all are taken. Its end is noticed even when nobody says so."""
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNANSWERED_MS)
        for option, seconds in _PROBES:
            peer.setsockopt(socket.IPPROTO_TCP, option, seconds)
        self._remote += 1
        return self._remote <= self._max_remote

    def leave_remote(self) -> None:
        """It has gone."""
        self._remote -= 1

    @staticmethod
    def left_after(peer: socket.socket) -> int:
        """How many descriptors are left: the kernel gives out the lowest, so this one's number tells."""
        return _descriptors() - peer.fileno()


def _descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
