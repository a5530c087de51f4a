"""Exec events: what is told of runs, when, and never twice."""
