"""The files in which a conversation's blocks can be read without limpet: written behind it, from its facts alone."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from limpet.model.blocks import Block
from limpet.model.characters import whole_characters
from limpet.model.errors import Refusal
from limpet.model.facts import ShellGone

EVENTS: Final = "events.jsonl"
BLOCKS: Final = "blocks.jsonl"
OUTPUT: Final = "output.spool"
STATE: Final = ".state"
# A delta is cut at so many bytes, whenever they came: what is written depends on the facts alone.
DELTA_BYTES: Final = 4096
# What a block says beyond this is in its own file only.
MOST_IN_EVENTS_BYTES: Final = 64 << 10
_COPY_BYTES: Final = 1 << 20

_encoder: Final = msgspec.json.Encoder()

Told = Block | ShellGone
Read = Callable[[int, int], bytes]


class State(msgspec.Struct, kw_only=True):
    """How far the files of one run hold: all behind that is written again."""

    run_id: str
    boot_id: str
    told: int = 0
    seq: int = 0
    events_bytes: int = 0
    blocks_bytes: int = 0
    is_whole: bool = False

    def is_held_by(self, events: Path, blocks: Path) -> bool:
        """Whether the files are as long as they were."""
        return _holds(events, self.events_bytes) and _holds(blocks, self.blocks_bytes)


def state_of(directory: Path) -> State | None:
    """What stands there; None where that cannot be read."""
    try:
        return msgspec.json.decode((directory / STATE).read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return None


class Transcript:
    """Written by one thread at a time. `read` gives bytes of the spool; a Refusal where they are gone."""

    def __init__(self, directory: Path, run_id: str, spool: Path, boot_id: str, read: Read) -> None:
        self._directory = directory
        self._spool = spool
        self._read = read
        self._state = State(run_id=run_id, boot_id=boot_id)
        self._events: IO[bytes] | None = None
        # The block that runs: how much of it is in its own file, and in the events.
        self._active: str | None = None
        self._copied = 0
        self._shown = 0
        self._seq = 0
        # What was last said of how far the files hold.
        self._saved: tuple[int, bool] | None = None

    def catch_up(self, told: list[Told], active: Block | None, size: int, *, is_over: bool) -> None:
        """Writes down what has become known: all that ended, and how far the block that runs has come."""
        if self._events is None:
            self._open()
        state = self._state
        for entry in told[state.told :]:
            if isinstance(entry, ShellGone):
                self._event(
                    "session_reset", ts=entry.at, exit_code=entry.code, signal=entry.signal, block_id=entry.block
                )
            else:
                self._go_on(entry, entry.end)
                self._end(entry)
            state.told += 1
        self._settle(is_over)
        if active is not None and active.start is not None:
            self._go_on(active, size)
        if self._events is not None:
            self._events.flush()

    def close(self) -> None:
        """Lets go of its files; to go on takes another one."""
        if self._events is not None:
            self._events.close()
            self._events = None

    def _open(self) -> None:
        """Goes on behind what is known to be whole, or begins anew; what an earlier run left is set beside."""
        directory, wanted = self._directory, self._state
        before = state_of(directory)
        if before is not None and before.run_id != wanted.run_id:
            if before.run_id > wanted.run_id:
                raise Refusal("conflict", f"the files are those of a later run ({before.run_id}) by now")
            directory.replace(directory.with_name(f"{directory.name}.{before.run_id}"))
            before = None
        for each in (directory, directory / "blocks"):
            each.mkdir(mode=0o700, exist_ok=True)
        events, blocks = directory / EVENTS, directory / BLOCKS
        if before is not None and before.boot_id == wanted.boot_id and before.is_held_by(events, blocks):
            self._state = before
            self._saved = (before.told, before.is_whole)
        for path, length in ((events, self._state.events_bytes), (blocks, self._state.blocks_bytes)):
            with _private(path, "ab") as file:
                file.truncate(length)
        with contextlib.suppress(FileExistsError):
            (directory / OUTPUT).symlink_to(os.path.relpath(self._spool, directory))
        self._seq = self._state.seq
        self._events = _private(events, "ab")

    def _settle(self, is_over: bool) -> None:
        """Says how far the files hold by now; where a block runs that is up to its beginning, as it was said before."""
        state = self._state
        if self._events is None or self._active is not None or self._saved == (state.told, is_over):
            return
        self._events.flush()
        state.events_bytes, state.seq, state.is_whole = self._events.tell(), self._seq, is_over
        state.blocks_bytes = (self._directory / BLOCKS).stat().st_size
        fresh = self._directory / f"{STATE}.new"
        with _private(fresh, "wb") as file:
            file.write(_encoder.encode(state))
        fresh.replace(self._directory / STATE)
        self._saved = (state.told, is_over)

    def _event(self, kind: str, **fields: Any) -> None:
        assert self._events is not None
        self._seq += 1
        self._events.write(_encoder.encode({"seq": self._seq, "type": kind, **fields}) + b"\n")

    def _go_on(self, block: Block, upto: int | None) -> None:
        """Takes in the block as far as that place of the spool."""
        name = block.block_id
        if self._active != name:
            self._active, self._copied, self._shown = name, 0, 0
            begun = {"cmd": block.cmd, "cwd": block.cwd, "interactive": block.interactive}
            self._event("agent_block_begin", ts=block.ts_begin, block_id=name, block_seq=block.seq, **begun)
            _private(self._out(name), "wb").close()
        if block.start is None or upto is None or upto - block.start <= self._copied:
            return
        with self._out(name).open("r+b") as file:
            file.seek(self._copied)
            while self._copied < upto - block.start:
                low = block.start + self._copied
                try:
                    data = self._read(low, min(upto, low + _COPY_BYTES))
                except Refusal:
                    break  # said at its end
                file.write(data)
                self._copied += len(data)
        self._show(name, is_over=False)

    def _show(self, name: str, *, is_over: bool) -> None:
        """Deltas of what was copied: whole ones, and the last when there will be no more."""
        with self._out(name).open("rb") as file:
            for offset, data in _pieces(file, self._shown, min(self._copied, MOST_IN_EVENTS_BYTES), is_over=is_over):
                self._shown = offset + len(data)
                try:
                    said = {"data": data.decode()}
                except UnicodeDecodeError:
                    said = {"data_base64": data}
                self._event("agent_block_delta", block_id=name, offset=offset, bytes=len(data), **said)

    def _end(self, block: Block) -> None:
        name = block.block_id
        self._show(name, is_over=True)
        left = self._copied - self._shown
        if left:
            self._event("agent_block_delta", block_id=name, offset=self._shown, bytes=left, truncated=True)
        length = 0 if block.start is None or block.end is None else block.end - block.start
        ends: dict[str, Any] = {"status": block.status, "exit_code": block.exit_code, "signal": block.signal}
        ends |= {"ended_by": block.ended_by, "output_bytes": length}
        if self._copied < length:
            ends["missing_bytes"] = length - self._copied
        self._event("agent_block_end", ts=block.ts_end, block_id=name, **ends)
        known: dict[str, Any] = {"block_id": name, "seq": block.seq, "cmd": block.cmd, "cwd": block.cwd}
        known |= {"interactive": block.interactive, "ts_begin": block.ts_begin, "ts_end": block.ts_end, **ends}
        known |= {"start": block.start, "end": block.end, "output_path": f"blocks/{name}.out"}
        with _private(self._directory / BLOCKS, "ab") as file:
            file.write(_encoder.encode(known) + b"\n")
        self._active = None

    def _out(self, block_id: str) -> Path:
        return self._directory / "blocks" / f"{block_id}.out"


def _pieces(file: IO[bytes], start: int, end: int, *, is_over: bool) -> Iterator[tuple[int, bytes]]:
    """What stands there, cut at characters where it is text; without `is_over` whole pieces alone."""
    while start < end:
        file.seek(start)
        data = file.read(min(DELTA_BYTES, end - start))
        if len(data) < DELTA_BYTES and not is_over and end < MOST_IN_EVENTS_BYTES:
            return
        data = whole_characters(data) or data
        yield start, data
        start += len(data)


def forget(conversations: Path, run_ids: set[str]) -> None:
    """Removes what was written of these runs."""
    for directory in conversations.glob("*/agent_pty*"):
        state = state_of(directory)
        if state is not None and state.run_id in run_ids:
            shutil.rmtree(directory, ignore_errors=True)


def _holds(path: Path, length: int) -> bool:
    try:
        return path.stat().st_size >= length
    except OSError:
        return False


def _private(path: Path, mode: str) -> IO[bytes]:
    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    return open(path, mode, opener=opener)
