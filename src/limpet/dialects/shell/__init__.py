"""The shell dialect: commands as a person would type them, run at once or in the background."""

from limpet.dialects.shell.operations import ROWS

__all__ = ["ROWS"]
