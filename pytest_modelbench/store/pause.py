"""No search for cycles while results become records and counts, which have none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused(*, keep: bool = False) -> Iterator[None]:
    """Pause Python's cyclic collector, in this process; what is in no cycle is still freed.

    Each of its passes walks all that was read so far, which takes longer than reading it.
    ``keep``: what was made meanwhile stays until the process ends, and no pass ever walks it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if keep:  # before it is on again: its first pass would walk all of it
            gc.freeze()
        if was_on:
            gc.enable()
