"""What operations take and answer, as types; written from the rows, a module for each namespace."""
