"""`python -m limpet` is the command line."""

import sys

from limpet.surfaces.cli import main

if __name__ == "__main__":
    sys.exit(main())
