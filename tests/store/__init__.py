"""The doors to storage."""
