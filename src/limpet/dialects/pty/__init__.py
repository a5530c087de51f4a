"""The pty dialect: conversations with a shell that lives on, and the blocks in them."""

from limpet.dialects.pty import blocks, conversations, screens, waits

ROWS = (*conversations.ROWS, *waits.ROWS, *screens.ROWS, *blocks.ROWS)

__all__ = ["ROWS"]
