"""Every operation limpet has: each dialect's rows, in one tuple. Surfaces render it and know no names."""

from typing import Any, Final

from limpet.dialects import daemon, exec_events, pty, runs, shell
from limpet.model.operation import Operation

ROWS: Final[tuple[Operation[Any, Any], ...]] = (*shell.ROWS, *pty.ROWS, *runs.ROWS, *exec_events.ROWS, *daemon.ROWS)
