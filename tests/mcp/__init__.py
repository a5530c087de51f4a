"""The MCP surface by itself: its tools, their words and schemas, without a daemon."""
