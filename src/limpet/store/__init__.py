"""The only doors to storage: rows and blobs."""
