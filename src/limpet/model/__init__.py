"""Values and pure functions: no clock, no I/O, no async, no randomness."""
