"""The version of this limpet, in the one place that everything may import."""

from typing import Final

VERSION: Final = "0.1.0"
