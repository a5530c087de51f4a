"""A keeper of another protocol, played by the test: it holds a run and answers as docs/formats/keeper.md says."""

import fcntl
import json
import os
import signal
import socket
import threading
import time
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any

from .home import Answer
from .remains import records


class OtherKeeper:
    """Takes the place of a killed keeper whose command lives, and says which protocol it speaks."""

    def __init__(self, directory: Path, protocol: int) -> None:
        self.directory = directory
        self.protocol = protocol
        self.frames: list[Answer] = []
        self._facts = records(directory / "keeper.journal")
        self._pid = next(fact["pid"] for fact in self._facts if fact["fact"] == "started")
        self._journal = (directory / "keeper.journal").open("r+b")
        fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (directory / "control.sock").unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / "control.sock"))
        (directory / "control.sock").chmod(0o600)
        self._listener.listen(8)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def said(self, do: str) -> bool:
        """Has a frame of that name come?"""
        return any(frame.get("do") == do for frame in self.frames)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                frame: Answer = json.loads(line)
                self.frames.append(frame)
                reply: Answer = {"re": frame.get("id"), "ok": True}
                if frame.get("do") == "hello" and frame.get("protocol") != self.protocol:
                    message = f"this keeper speaks protocol {self.protocol}"
                    reply |= {"ok": False, "error": "conflict", "message": message, "protocol": self.protocol}
                try:
                    connection.sendall(json.dumps(reply).encode() + b"\n")
                except OSError:
                    return
                if frame.get("do") == "kill":
                    self._end()

    def _end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        streams = self._facts[1]["streams"]
        sizes = {name: (self.directory / f"{name}.spool").stat().st_size for name in streams}
        crcs = {name: zlib.crc32((self.directory / f"{name}.spool").read_bytes()) for name in streams}
        self._append("exited", code=None, signal="SIGKILL", core=False, oom=False)
        ends = {name: {"end": size, "open": False} for name, size in sizes.items()}
        self._append("ended", by="kill", streams=ends, survivors=[], cannot_signal=[])
        kept = {name: {"bytes": size, "hole": None, "crc32": f"{crcs[name]:08x}"} for name, size in sizes.items()}
        self._append("sealed", streams=kept)
        self.close()

    def _append(self, fact: str, **fields: Any) -> None:
        chain = 0
        for known in self._facts:
            chain = zlib.crc32(json.dumps(known, separators=(",", ":")).encode(), chain)
        record: Answer = {"n": len(self._facts) + 1, "at": time.time_ns() // 1_000_000, "fact": fact, **fields}
        body = json.dumps(record, separators=(",", ":")).encode()
        self._facts.append(record)
        self._journal.seek(0, os.SEEK_END)
        self._journal.write(b"1 %08x %s\n" % (zlib.crc32(body, chain), body))
        self._journal.flush()

    def close(self) -> None:
        for held in (self._listener, *self._open):
            held.close()
        self._journal.close()

    def __enter__(self) -> "OtherKeeper":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
