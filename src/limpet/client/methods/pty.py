"""`client.pty`: the operations `pty.*`."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Unpack, cast

from limpet.client.methods.asking import Ask, AskNow, named
from limpet.client.types.pty import (
    PtyCloseAnswer,
    PtyCloseParams,
    PtyEndSessionAnswer,
    PtyEndSessionParams,
    PtyExecBlockAnswer,
    PtyExecBlockParams,
    PtyExecInteractiveAnswer,
    PtyExecInteractiveParams,
    PtyExpectSendAnswer,
    PtyExpectSendParams,
    PtyExpectSendTimeout,
    PtyOpenAnswer,
    PtyOpenParams,
    PtyReadSpoolAnswer,
    PtyReadSpoolParams,
    PtyResetAnswer,
    PtyResetParams,
    PtyResizeAnswer,
    PtyResizeParams,
    PtyRunAnswer,
    PtyRunParams,
    PtyRunTimeout,
    PtySendAnswer,
    PtySendParams,
    PtySendTimeout,
    PtySignalAnswer,
    PtySignalParams,
    PtySnapshotAnswer,
    PtySnapshotParams,
    PtyStatusAnswer,
    PtyStatusParams,
    PtyWaitForAnswer,
    PtyWaitForParams,
    PtyWaitForTimeout,
    PtyWaitPromptAnswer,
    PtyWaitPromptParams,
    PtyWaitPromptTimeout,
)


class AsyncPty:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def open(self, **params: Unpack[PtyOpenParams]) -> PtyOpenAnswer:
        """Opens a conversation: a shell on a terminal that lives on between commands."""
        return cast("PtyOpenAnswer", await self._ask("pty.open", named(params)))

    async def exec_block(self, **params: Unpack[PtyExecBlockParams]) -> PtyExecBlockAnswer:
        """Begins a command in a conversation's shell, as a block of its own."""
        return cast("PtyExecBlockAnswer", await self._ask("pty.exec_block", named(params)))

    async def exec_interactive(self, **params: Unpack[PtyExecInteractiveParams]) -> PtyExecInteractiveAnswer:
        """Begins a program that is to be talked to: an installer, a REPL, an editor."""
        return cast("PtyExecInteractiveAnswer", await self._ask("pty.exec_interactive", named(params)))

    async def send(self, **params: Unpack[PtySendParams]) -> PtySendAnswer | PtySendTimeout:
        """Types text into what runs in a conversation."""
        return cast("PtySendAnswer | PtySendTimeout", await self._ask("pty.send", named(params)))

    async def read_spool(self, **params: Unpack[PtyReadSpoolParams]) -> PtyReadSpoolAnswer:
        """Reads a conversation's spool from a cursor on."""
        return cast("PtyReadSpoolAnswer", await self._ask("pty.read_spool", named(params)))

    async def status(self, **params: Unpack[PtyStatusParams]) -> PtyStatusAnswer:
        """Says what a conversation is at."""
        return cast("PtyStatusAnswer", await self._ask("pty.status", named(params)))

    async def resize(self, **params: Unpack[PtyResizeParams]) -> PtyResizeAnswer:
        """Tells a conversation's terminal its size."""
        return cast("PtyResizeAnswer", await self._ask("pty.resize", named(params)))

    async def signal(self, **params: Unpack[PtySignalParams]) -> PtySignalAnswer:
        """Sends a signal to what runs in the terminal's foreground."""
        return cast("PtySignalAnswer", await self._ask("pty.signal", named(params)))

    async def end_session(self, **params: Unpack[PtyEndSessionParams]) -> PtyEndSessionAnswer:
        """Brings the prompt back: by Ctrl-C, then TERM, and with `force` by a new shell."""
        return cast("PtyEndSessionAnswer", await self._ask("pty.end_session", named(params)))

    async def reset(self, **params: Unpack[PtyResetParams]) -> PtyResetAnswer:
        """Ends all that runs in a conversation, its shell too, and begins another; history is kept."""
        return cast("PtyResetAnswer", await self._ask("pty.reset", named(params)))

    async def close(self, **params: Unpack[PtyCloseParams]) -> PtyCloseAnswer:
        """Ends a conversation and all that runs in it; what it said can still be read."""
        return cast("PtyCloseAnswer", await self._ask("pty.close", named(params)))

    async def wait_for(self, **params: Unpack[PtyWaitForParams]) -> PtyWaitForAnswer | PtyWaitForTimeout:
        """Waits for text, a pattern, the prompt, quiet, or the end of what runs, from a cursor on."""
        return cast("PtyWaitForAnswer | PtyWaitForTimeout", await self._ask("pty.wait_for", named(params)))

    async def wait_prompt(self, **params: Unpack[PtyWaitPromptParams]) -> PtyWaitPromptAnswer | PtyWaitPromptTimeout:
        """Waits until the shell is back at its prompt; answers with the block's exit code."""
        return cast("PtyWaitPromptAnswer | PtyWaitPromptTimeout", await self._ask("pty.wait_prompt", named(params)))

    async def expect_send(self, **params: Unpack[PtyExpectSendParams]) -> PtyExpectSendAnswer | PtyExpectSendTimeout:
        """Waits, and types at once what is to follow, with nobody's writing in between."""
        return cast("PtyExpectSendAnswer | PtyExpectSendTimeout", await self._ask("pty.expect_send", named(params)))

    async def run(self, **params: Unpack[PtyRunParams]) -> PtyRunAnswer | PtyRunTimeout:
        """Runs a command in a conversation's shell and waits for its prompt."""
        return cast("PtyRunAnswer | PtyRunTimeout", await self._ask("pty.run", named(params)))

    async def snapshot(self, **params: Unpack[PtySnapshotParams]) -> PtySnapshotAnswer:
        """Shows what stands on a conversation's screen, as a person would see it."""
        return cast("PtySnapshotAnswer", await self._ask("pty.snapshot", named(params)))


class SyncPty:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: AskNow) -> None:
        self._ask = ask

    def open(self, **params: Unpack[PtyOpenParams]) -> PtyOpenAnswer:
        """Opens a conversation: a shell on a terminal that lives on between commands."""
        return cast("PtyOpenAnswer", self._ask("pty.open", named(params)))

    def exec_block(self, **params: Unpack[PtyExecBlockParams]) -> PtyExecBlockAnswer:
        """Begins a command in a conversation's shell, as a block of its own."""
        return cast("PtyExecBlockAnswer", self._ask("pty.exec_block", named(params)))

    def exec_interactive(self, **params: Unpack[PtyExecInteractiveParams]) -> PtyExecInteractiveAnswer:
        """Begins a program that is to be talked to: an installer, a REPL, an editor."""
        return cast("PtyExecInteractiveAnswer", self._ask("pty.exec_interactive", named(params)))

    def send(self, **params: Unpack[PtySendParams]) -> PtySendAnswer | PtySendTimeout:
        """Types text into what runs in a conversation."""
        return cast("PtySendAnswer | PtySendTimeout", self._ask("pty.send", named(params)))

    def read_spool(self, **params: Unpack[PtyReadSpoolParams]) -> PtyReadSpoolAnswer:
        """Reads a conversation's spool from a cursor on."""
        return cast("PtyReadSpoolAnswer", self._ask("pty.read_spool", named(params)))

    def status(self, **params: Unpack[PtyStatusParams]) -> PtyStatusAnswer:
        """Says what a conversation is at."""
        return cast("PtyStatusAnswer", self._ask("pty.status", named(params)))

    def resize(self, **params: Unpack[PtyResizeParams]) -> PtyResizeAnswer:
        """Tells a conversation's terminal its size."""
        return cast("PtyResizeAnswer", self._ask("pty.resize", named(params)))

    def signal(self, **params: Unpack[PtySignalParams]) -> PtySignalAnswer:
        """Sends a signal to what runs in the terminal's foreground."""
        return cast("PtySignalAnswer", self._ask("pty.signal", named(params)))

    def end_session(self, **params: Unpack[PtyEndSessionParams]) -> PtyEndSessionAnswer:
        """Brings the prompt back: by Ctrl-C, then TERM, and with `force` by a new shell."""
        return cast("PtyEndSessionAnswer", self._ask("pty.end_session", named(params)))

    def reset(self, **params: Unpack[PtyResetParams]) -> PtyResetAnswer:
        """Ends all that runs in a conversation, its shell too, and begins another; history is kept."""
        return cast("PtyResetAnswer", self._ask("pty.reset", named(params)))

    def close(self, **params: Unpack[PtyCloseParams]) -> PtyCloseAnswer:
        """Ends a conversation and all that runs in it; what it said can still be read."""
        return cast("PtyCloseAnswer", self._ask("pty.close", named(params)))

    def wait_for(self, **params: Unpack[PtyWaitForParams]) -> PtyWaitForAnswer | PtyWaitForTimeout:
        """Waits for text, a pattern, the prompt, quiet, or the end of what runs, from a cursor on."""
        return cast("PtyWaitForAnswer | PtyWaitForTimeout", self._ask("pty.wait_for", named(params)))

    def wait_prompt(self, **params: Unpack[PtyWaitPromptParams]) -> PtyWaitPromptAnswer | PtyWaitPromptTimeout:
        """Waits until the shell is back at its prompt; answers with the block's exit code."""
        return cast("PtyWaitPromptAnswer | PtyWaitPromptTimeout", self._ask("pty.wait_prompt", named(params)))

    def expect_send(self, **params: Unpack[PtyExpectSendParams]) -> PtyExpectSendAnswer | PtyExpectSendTimeout:
        """Waits, and types at once what is to follow, with nobody's writing in between."""
        return cast("PtyExpectSendAnswer | PtyExpectSendTimeout", self._ask("pty.expect_send", named(params)))

    def run(self, **params: Unpack[PtyRunParams]) -> PtyRunAnswer | PtyRunTimeout:
        """Runs a command in a conversation's shell and waits for its prompt."""
        return cast("PtyRunAnswer | PtyRunTimeout", self._ask("pty.run", named(params)))

    def snapshot(self, **params: Unpack[PtySnapshotParams]) -> PtySnapshotAnswer:
        """Shows what stands on a conversation's screen, as a person would see it."""
        return cast("PtySnapshotAnswer", self._ask("pty.snapshot", named(params)))
