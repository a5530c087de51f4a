"""How operations are reached: each surface renders rows that it does not know by name."""
