"""The gateway: operations and events over WebSocket."""
