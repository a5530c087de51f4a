"""Laws of the files: recorded runs that must always be readable, and inputs that once broke a reader."""
