"""Which cursor keys a run's terminal sends: its programs ask for it in their output, so the output says it."""

from typing import Final

from limpet.engine.reading import read_exactly, stream_of
from limpet.model.keys import last_cursor_mode
from limpet.model.run import Run
from limpet.store.blobs import BlobStore

_BLOCK_BYTES: Final = 1 << 20
# How far back is looked: a program asks when it begins to draw, and draws little.
_MOST_BYTES: Final = 64 << 20
# The longest request of its kind that is recognised where two blocks meet.
_OVERLAP_BYTES: Final = 64


def is_application_cursor(run: Run, blobs: BlobStore) -> bool:
    """What the last word on it in the terminal's output says; normal cursor keys where there is none. May take long."""
    stream = stream_of(run, "pty")
    first = max(stream.kept_from, stream.parts[-1], stream.bytes - _MOST_BYTES)
    end = stream.bytes
    while end > first:
        start = max(first, end - _BLOCK_BYTES)
        mode = last_cursor_mode(read_exactly(run, blobs, "pty", start, min(end + _OVERLAP_BYTES, stream.bytes)))
        if mode is not None:
            return mode
        end = start
    return False
