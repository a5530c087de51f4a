"""The blocks of a conversation, and how each fact changes how it stands: one pure function over its run's facts."""

import base64
from typing import Literal

import msgspec

from limpet.model.facts import (
    AnyFact,
    BlockBegun,
    Delivered,
    Ended,
    Lost,
    Prompt,
    ResetAsked,
    ShellBegan,
    ShellGone,
    Signalled,
    Stdin,
)

BlockStatus = Literal["running", "interactive", "completed", "failed", "cancelled"]
Mode = Literal["idle", "block_running", "interactive"]
EndedBy = Literal["prompt", "shell_gone", "reset", "closed"]


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One command in a conversation. Its output is [start, end) of the spool."""

    block_id: str
    seq: int
    cmd: str
    cwd: str
    interactive: bool
    ts_begin: int
    ts_end: int | None = None
    status: BlockStatus
    exit_code: int | None = None
    signal: str | None = None
    ended_by: EndedBy | None = None
    # None until the shell was handed it, and until it has ended.
    start: int | None = None
    end: int | None = None
    key: str | None = None
    digest: str | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation stands."""

    active: Block | None = None
    blocks: int = 0
    cwd: str = ""
    shell_pid: int | None = None
    # Whether the shell waits for what it is to do.
    is_ready: bool = False
    # The last genuine prompt.
    prompt: Prompt | None = None
    shells: int = 0
    resets: int = 0
    is_over: bool = False
    # Whether the active block was interrupted by a signal, or its terminal's key for it was pressed.
    interrupted: bool = False
    is_key_pressed: bool = False
    # How much its terminal took over all its life.
    typed_bytes: int = 0
    is_reset_asked: bool = False

    @property
    def mode(self) -> Mode:
        if self.active is None:
            return "idle"
        return "interactive" if self.active.interactive else "block_running"


def fold_block(standing: Standing, fact: AnyFact) -> tuple[Standing, Block | None]:
    """How it stands after one more fact, and the block that it ended. Total; a block ends once."""
    change = msgspec.structs.replace
    match fact:
        case BlockBegun() if standing.active is None and not standing.is_over:
            seq = standing.blocks + 1
            block = Block(
                block_id=fact.block,
                seq=seq,
                cmd=fact.cmd,
                cwd=fact.cwd or standing.cwd,
                interactive=fact.interactive,
                ts_begin=fact.at,
                status="interactive" if fact.interactive else "running",
                key=fact.key,
                digest=fact.digest,
            )
            return change(standing, active=block, blocks=seq, interrupted=False, is_key_pressed=False), None
        case Delivered() if standing.active is not None and standing.active.block_id == fact.block:
            return change(standing, active=change(standing.active, start=fact.offset), is_ready=False), None
        case Signalled() if fact.signal in ("SIGINT", "SIGTERM", "SIGQUIT", "SIGKILL", "SIGHUP"):
            return change(standing, interrupted=True), None
        case Stdin():
            pressed = fact.data is not None and b"\x03" in base64.b64decode(fact.data)
            return change(standing, typed_bytes=fact.end, is_key_pressed=standing.is_key_pressed or pressed), None
        case Prompt():
            cwd = base64.b64decode(fact.cwd_b64).decode("utf-8", errors="replace")
            after = change(standing, prompt=fact, cwd=cwd, is_ready=True)
            if standing.active is None or fact.block != standing.active.block_id:
                return after, None
            return _ended(after, fact.at, fact.output_end, "prompt", fact.exit, None)
        case ShellBegan():
            begun = standing.shells + 1
            return change(standing, shell_pid=fact.pid, is_ready=False, shells=begun, is_reset_asked=False), None
        case ShellGone():
            by: EndedBy = "reset" if standing.is_reset_asked else "shell_gone"
            after = change(standing, shell_pid=None, is_ready=False, resets=standing.resets + 1)
            if standing.active is None or fact.block != standing.active.block_id:
                return after, None
            return _ended(after, fact.at, fact.offset, by, fact.code, fact.signal)
        case ResetAsked():
            return change(standing, is_reset_asked=True), None
        case Ended() | Lost() if not standing.is_over:
            after = change(standing, is_over=True, is_ready=False, shell_pid=None)
            ends = fact.streams.get("pty")
            end = ends if ends is None or isinstance(ends, int) else ends.end
            return _ended(after, fact.at, end, "closed", None, None)
        case _:
            return standing, None


def _ended(
    standing: Standing, at: int, end: int | None, by: EndedBy, code: int | None, signal: str | None
) -> tuple[Standing, Block | None]:
    block = standing.active
    if block is None:
        return standing, None
    status: BlockStatus = "failed"
    if by == "prompt" and code == 0:
        status = "completed"
    elif by == "prompt" and (standing.interrupted or (standing.is_key_pressed and code == 130)):
        status = "cancelled"
    over = msgspec.structs.replace(block, ts_end=at, status=status, exit_code=code, signal=signal, ended_by=by)
    if block.start is not None:
        over = msgspec.structs.replace(over, end=max(block.start, block.start if end is None else end))
    return msgspec.structs.replace(standing, active=None), over
