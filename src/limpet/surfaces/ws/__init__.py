"""Operations and events over WebSocket: one path, frames of JSON, and clients that may be slow."""
