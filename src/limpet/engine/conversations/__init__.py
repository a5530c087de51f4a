"""Conversations: kept runs of a shell on a terminal, and the blocks in them."""
