"""Which programs a command runs, by name, as far as its text tells ([why so](docs/adr/0019-names-from-text.md))."""

from limpet.model.naming.names import Names, might_name, names_in, names_of

__all__ = ["Names", "might_name", "names_in", "names_of"]
