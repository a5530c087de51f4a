"""What a WebSocket connection stands on: the transport that HTTP leaves to it."""

from typing import Any, Protocol


class Wire(Protocol):
    """An asyncio.Transport, whoever made it."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends, or keeps until it can be sent."""
        ...

    def pause_reading(self) -> None:
        """Takes no more for now."""
        ...

    def resume_reading(self) -> None:
        """Goes on taking."""
        ...

    def get_extra_info(self, name: str) -> Any:
        """`socket`: what it sends on."""
        ...

    def write_eof(self) -> None:
        """Sends no more once all is sent; goes on taking."""
        ...

    def close(self) -> None:
        """Ends once all is sent."""
        ...

    def abort(self) -> None:
        """Ends now."""
        ...
