"""Operations on the daemon itself."""

from limpet.dialects.daemon.operations import ROWS

__all__ = ["ROWS"]
