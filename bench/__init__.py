"""Measures limpet beside its limits: programs of our own that do the bare minimum of the same work."""
