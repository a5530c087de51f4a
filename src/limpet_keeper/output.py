"""Output on its way to its spool: read what is there, fold what a terminal says, write it once."""

from __future__ import annotations

import os

from limpet_keeper.folding import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from limpet_keeper.spool import Spool

PIPE_BYTES = 1 << 20
# A terminal gives 4 KiB a read: this much is gathered before it is folded and written. Larger pieces would have their
# memory mapped anew each time.
TERMINAL_BYTES = 96 << 10
# A read below this says that the command writes little at a time. A terminal never holds much: there it must be less.
SMALL_PIPE_BYTES = 16 << 10
SMALL_TERMINAL_BYTES = 2 << 10
# How long output may gather while nobody listens. A terminal takes 68 KiB meanwhile, and then its command stands still.
GATHER_PIPE_S = 0.01
GATHER_TERMINAL_S = 0.002


class Stream:
    """One output of the command, as long as anything holds it open."""

    def __init__(self, fd: int, spool: Spool, is_terminal: bool) -> None:
        self.fd = fd
        self.spool = spool
        self.name = spool.name
        self.is_open = True
        self.is_watched = False
        self.last_read_at = 0.0
        self.was_small = False
        self.small_bytes = SMALL_TERMINAL_BYTES if is_terminal else SMALL_PIPE_BYTES
        self.gather_s = GATHER_TERMINAL_S if is_terminal else GATHER_PIPE_S
        self.folder = Folder() if is_terminal else None
        # Looks at what a terminal is told, and where in the spool that stands.
        self.look: Callable[[bytes, int, int], None] = lambda _data, _start, _end: None
        os.set_blocking(fd, False)

    def read(self, buffer: memoryview) -> int | None:
        """Takes what is there into the spool; how many bytes it read, 0 at the end of file, None for nothing now."""
        if self.folder is not None:
            return self._read_terminal(buffer, self.folder)
        try:
            count = os.readv(self.fd, (buffer,))
        except (BlockingIOError, InterruptedError):
            return None
        if count:
            self.spool.append(buffer[:count], [])
        return count

    def _read_terminal(self, buffer: memoryview, folder: Folder) -> int | None:
        count, over = 0, False
        while count < TERMINAL_BYTES and not over:
            try:
                more = os.readv(self.fd, (buffer[count:TERMINAL_BYTES],))
            except (BlockingIOError, InterruptedError):
                break
            except OSError:  # EIO: nobody holds the other side any more
                more = 0
            over = not more
            count += more
        if count:
            data, start = bytes(buffer[:count]), self.spool.size
            folded, bare_places = folder.fold(data)
            self.spool.append(memoryview(folded), bare_places)
            self.look(data, start, self.spool.size)
            return count
        if over and (rest := folder.rest()):
            self.spool.append(memoryview(rest), [])
        return 0 if over else None

    def close(self) -> None:
        self.is_open = False
        os.close(self.fd)
