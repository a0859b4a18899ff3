"""Run as ``python -m herald``."""

import sys

from herald.cli import main

sys.exit(main(sys.argv[1:]))
