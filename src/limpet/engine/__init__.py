"""The durable runtime as a library: from a submitted run to its recorded end."""
