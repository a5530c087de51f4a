"""Typed methods for operations; written from the rows, a module for each namespace."""
