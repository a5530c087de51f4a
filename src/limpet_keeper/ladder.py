"""The kill ladder: a signal to all, a grace, then freeze and kill until nothing is left that can be killed."""

from __future__ import annotations

from limpet_keeper import system
from limpet_keeper.bare import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from limpet_keeper.journal import Journal
    from limpet_keeper.timers import Timers
    from limpet_keeper.tree import Tree

_FIRST_LOOK_S = 0.002
_LAST_LOOK_S = 0.1


class Ladder:
    """Climbed once for a run, by whoever asks first; later callers can only hurry it."""

    def __init__(self, tree: Tree, journal: Journal, timers: Timers, on_done: Callable[[], None]) -> None:
        self.tree = tree
        self.journal = journal
        self.timers = timers
        self.on_done = on_done
        self.by: str | None = None
        self.kills = False
        self.done = False
        self._look_s = _FIRST_LOOK_S

    def active(self) -> bool:
        return self.by is not None and not self.done

    def begin(self, by: str, number: int, grace_ms: int) -> None:
        """The first rung; when it is under way already, a shorter grace shortens what is left of it."""
        grace_s = 0.0 if number == signal.SIGKILL else grace_ms / 1000
        if self.by is None or self.done:
            self.by, self.done, self.kills = by, False, False
            self.journal.append("stopping", by=by, signal=system.signal_name(number), grace_ms=grace_ms)
            if number != signal.SIGKILL:
                self.tree.signal(number, signal.SIGCONT)
        elif self.kills:
            return
        left_s = self.timers.left_s("grace")
        if left_s is None or grace_s < left_s:
            self.timers.set("grace", grace_s, self._kill)
        if not grace_s:
            self.timers.clear("grace")
            self._kill()

    def _kill(self) -> None:
        if not self.kills:
            self.kills = True
            self._look_s = _FIRST_LOOK_S
            self.journal.append("killing")
        self.tree.kill()
        if self.tree.only_denied_left():
            self.finish()
        else:
            self.timers.set("look_again", self._look_s, self._kill)
            self._look_s = min(_LAST_LOOK_S, self._look_s * 2)

    def finish(self) -> None:
        """Nothing is left but what may not be signalled."""
        self.timers.clear("grace", "look_again")
        if self.active():
            self.done = True
            self.on_done()
