"""Tests of the matcher: laws over random patterns and bytes, refusals, and what once broke."""
