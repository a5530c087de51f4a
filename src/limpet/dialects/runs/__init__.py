"""Operations on runs of every dialect: list, look, read, wait, steer."""

from limpet.dialects.runs import operations, screens, search, upkeep, wait

ROWS = (*operations.ROWS, *screens.ROWS, *wait.ROWS, *search.ROWS, *upkeep.ROWS)

__all__ = ["ROWS"]
