"""The shell dialect: commands as a person would type them, run at once or in the background."""

from limpet.dialects.shell import backlog, operations

ROWS = (*operations.ROWS, *backlog.ROWS)

__all__ = ["ROWS"]
