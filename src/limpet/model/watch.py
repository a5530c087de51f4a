"""What a run is watched for, and how far that has come."""

from typing import Final, Literal

import msgspec

MatchType = Literal["regex", "line"]
Scope = Literal["any", "stdout", "stderr"]

# So many hits of one watcher become items of a run; then it is suppressed.
MOST_HITS: Final = 1000
# As much of a match as is kept with it; its span stays true.
MATCH_MAX_BYTES: Final = 4096


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """One watcher as it was asked for."""

    regex: str
    event: str
    once: bool = False
    scope: Scope = "any"
    match_type: MatchType = "regex"

    def hears(self, stream: str) -> bool:
        """A terminal has one stream for both: whoever listens to stdout hears it."""
        return self.scope in ("any", stream) or (self.scope == "stdout" and stream == "pty")


class Watching(msgspec.Struct, frozen=True):
    """How far one watcher has come."""

    hits: int = 0
    # Whether it looks no further: it was to hit once, or hit too often.
    is_over: bool = False
    # Where its last hit in each stream ended: there it goes on.
    ends: dict[str, int] = {}

    def hit(self, stream: str, end: int, *, once: bool) -> "Watching":
        """With one hit more."""
        return Watching(self.hits + 1, self.is_over or once, self.ends | {stream: end})
