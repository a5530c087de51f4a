"""The targets: each file has `seeds()`, inputs to begin with, and `check(data)`, which raises when a law is broken."""

NAMES = ("journal", "facts", "merge", "control", "folding", "operation", "matching")
