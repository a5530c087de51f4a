"""Operations on runs of every dialect: list, look, read, wait, steer."""

from limpet.dialects.runs.operations import ROWS

__all__ = ["ROWS"]
