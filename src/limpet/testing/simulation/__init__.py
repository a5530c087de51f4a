"""Histories of keepers, commands and one daemon after another, each decided by one seed: docs/how-to/simulate.md."""

from limpet.testing.simulation.history import Told, simulate
from limpet.testing.simulation.world import Violation

__all__ = ["Told", "Violation", "simulate"]
