"""The interpreter's own C parts, bare: the modules above them would double the memory of every keeper."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Callable
    from ctypes import c_int, c_int64

    def c_function(name: str, *takes: type) -> Callable[..., int]: ...
    def accept(listener: socket.socket) -> socket.socket: ...
else:
    import _ctypes
    import _signal as signal
    import _socket as socket

    class c_int(_ctypes._SimpleCData):  # noqa: N801, SLF001
        _type_ = "i"

    class c_int64(_ctypes._SimpleCData):  # noqa: N801, SLF001
        _type_ = "q"

    class _Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL
        _restype_ = c_int

    def c_function(name, *takes):
        """A function of the C library that answers with an int."""
        function = _Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), name))
        function.argtypes = takes
        return function

    def accept(listener):
        """The next who waits at the door; OSError when nobody does."""
        return socket.socket(fileno=listener._accept()[0])  # noqa: SLF001


__all__ = ["accept", "c_function", "c_int", "c_int64", "signal", "socket"]
