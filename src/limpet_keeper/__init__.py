"""The keeper: one small process for each run, that keeps what it says and how it ends. See docs/formats/keeper.md."""

PROTOCOL = 1
VERSION = "0.1.0"
