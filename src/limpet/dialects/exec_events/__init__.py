"""Events of runs whose program is whitelisted: `exec.started`, `exec.output`, `exec.completed`."""

from limpet.dialects.exec_events.operations import ROWS

__all__ = ["ROWS"]
