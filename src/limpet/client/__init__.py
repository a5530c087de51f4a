"""The Python client of a daemon: async, and a sync portal over it."""
