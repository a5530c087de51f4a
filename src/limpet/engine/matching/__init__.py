"""Finds patterns in streams of bytes, in time linear in the bytes, however they are cut."""

from limpet.engine.matching.pattern import MatchType, Pattern, compile_pattern, known_pattern
from limpet.engine.matching.scanner import Hit, Scanner
from limpet.engine.matching.watch_set import WatchSet

__all__ = ["Hit", "MatchType", "Pattern", "Scanner", "WatchSet", "compile_pattern", "known_pattern"]
