"""Operations on runs of every dialect: list, look, read, wait, steer."""

from limpet.dialects.runs import operations, upkeep, wait

ROWS = (*operations.ROWS, *wait.ROWS, *upkeep.ROWS)

__all__ = ["ROWS"]
