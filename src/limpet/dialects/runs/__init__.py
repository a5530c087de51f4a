"""Operations on runs of every dialect: list, look, read, wait, steer."""

from limpet.dialects.runs import operations, upkeep

ROWS = (*operations.ROWS, *upkeep.ROWS)

__all__ = ["ROWS"]
