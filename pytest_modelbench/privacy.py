"""Privacy: keep this process's memory and environment from other processes of its user."""

from __future__ import annotations

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def close_to_others() -> None:
    """Make ``/proc/<pid>/environ``, ``mem`` and the like unreadable to all but root (Linux).

    A command at the portable level runs as our own user, and could else read the keys that we were
    started with. Debuggers of that user are shut out, too. A program that this process starts is
    not covered: what it is started with must hold no key.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
