"""Fuzzers of limpet's formats: `python -m fuzz [TARGET ...] [--seconds N]`. Each target asserts laws, not survival."""
