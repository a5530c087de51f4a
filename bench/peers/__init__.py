"""What limpet is measured beside: each peer driven by a process of its own, in an environment of its own."""


class CannotError(Exception):
    """The peer cannot do what is asked; the text says why."""
