"""What of the results cannot be used: said beside whatever a command prints."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def tell(damages: Iterable[object]) -> None:
    """Print a line on standard error for each damage; everything else counts all the same."""
    for damage in damages:
        print(f"modelbench: {damage}", file=sys.stderr)
