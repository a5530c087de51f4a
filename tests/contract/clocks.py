"""A wall clock that jumps for one home alone: its daemon and keepers see it, the machine and the test do not."""

import mmap
import struct
import subprocess
from pathlib import Path

from .surface import Surface

HOUR_S = 3600
TEN_YEARS_S = 10 * 365 * 24 * HOUR_S


class JumpingClock:
    """Injector: a library before libc's own; the environment that loads it, and the jumps (see jumping_clock.c)."""

    def __init__(self, folder: Path) -> None:
        library, offset = folder / "jumping_clock.so", folder / "offset"
        source = Path(__file__).with_name("jumping_clock.c")
        build = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(source), "-ldl"]
        subprocess.run(build, check=True, capture_output=True)
        offset.write_bytes(bytes(8))
        with offset.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 8)
        self.env = {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(offset)}

    def jump(self, offset_s: int) -> None:
        """From now on the wall clock is so far from the true one."""
        self._page[:8] = struct.pack("=q", offset_s)

    def happened(self, surface: Surface, true_ms: float) -> float:
        """How far the daemon's clock was from the true one when it made a run just now."""
        return (surface.facts(surface.spawn("true"))["created_at"] - true_ms) / 1000
