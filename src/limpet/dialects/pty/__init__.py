"""The pty dialect: conversations with a shell that lives on, and the blocks in them."""

from limpet.dialects.pty import blocks, conversations, waits

ROWS = (*conversations.ROWS, *waits.ROWS, *blocks.ROWS)

__all__ = ["ROWS"]
