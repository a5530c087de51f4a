"""A run on a terminal that keeps every byte typed to it: what arrived, and when it is ready for the next."""

from pathlib import Path

from .home import Answer, until
from .surface import Surface

SEND = "send_keys"
TOO_LONG = "line_too_long_for_canonical"
TOO_LONG_CODES = ("invalid_argument", "too_large", "conflict")
RAW = "stty raw -echo; "
LINES = "stty -echo; "


def typed(
    surface: Surface, run_id: str, *, text: str | None = None, keys: list[str] | None = None, **params: object
) -> Answer:
    given = {"text": text, "keys": keys}
    present = {name: value for name, value in given.items() if value is not None}
    return surface.ok("shell", {"action": SEND, "run_id": run_id, **present, **params})


def send_words(run_id: str, text: str | None = None, *keys: str, json: bool = False) -> list[str]:
    """The words of `limpet send`, as its own help has them."""
    literal = [] if text is None else ["--text", text]
    return ["send", *(["--json"] if json else []), *literal, run_id, *keys]


class Typewriter:
    """A run whose terminal is in the mode asked for, and copies what it reads into a file."""

    def __init__(self, surface: Surface, folder: Path, mode: str) -> None:
        self._surface = surface
        self.paper = folder / "paper"
        self.run_id = surface.spawn(f"{mode}printf ready; exec cat >'{self.paper}'", pty=True)
        assert surface.read(self.run_id, "pty", wait_ms=60_000)["data"] == "ready"

    def type(self, *, text: str | None = None, keys: list[str] | None = None, **params: object) -> Answer:
        return typed(self._surface, self.run_id, text=text, keys=keys, **params)

    def got(self, size: int) -> bytes:
        """All that has arrived, once it is so many bytes."""
        until(lambda: self.paper.exists() and self.paper.stat().st_size >= size, f"{size} bytes typed")
        return self.paper.read_bytes()

    def end(self) -> None:
        self._surface.ok("runs.kill", {"run_id": self.run_id})
        self._surface.finish(self.run_id)
