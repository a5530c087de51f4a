"""Names of programs in command lines."""
