"""Testing tools that ship with limpet."""
