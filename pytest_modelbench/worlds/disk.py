"""The watch on disk: end a command whose trees grow until others have no room.

A box bounds the size of each file, not their sum, and worlds may lie in shared memory, where what
is written is memory of the machine. Free space is asked, which costs nothing; trees are measured
only when much of it has gone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

RESERVE = 2**30
"""Bytes of free space below which a large tree is ended, though it is within its limit."""

LARGE = 2**28
_ENTRIES = 200_000


class DiskWatch:
    """Watch the writable sources of one box against a limit in sum."""

    def __init__(self, sources: Sequence[Path], limit: int) -> None:
        self._sources = tuple(sources)
        self._limit = limit
        self._free = self._least_free()

    def over(self) -> str:
        """Return why the command must end, '' while it may go on."""
        free = self._least_free()
        if not self._sources or (self._free - free < self._limit // 2 and free > RESERVE):
            return ""
        size = sum(tree_bytes(source) for source in self._sources)
        if size > self._limit:
            return f"it has written more than {self._limit // 2**20} MiB"
        if free < RESERVE and size > LARGE:
            return f"the disk is nearly full, and it has written {size // 2**20} MiB"
        self._free = free + size  # others wrote what is gone; look again when as much has gone
        return ""

    def _least_free(self) -> int:
        found = []
        for source in self._sources:
            try:
                status = os.statvfs(source)
            except OSError:
                continue
            found.append(status.f_bavail * status.f_frsize)
        return min(found, default=0)


def tree_bytes(folder: Path) -> int:
    """Return the space that a folder's files take; what is beyond many entries is not counted."""
    size = 0
    left = _ENTRIES
    folders = [str(folder)]
    while folders and left > 0:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    left -= 1
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        else:
                            size += entry.stat(follow_symlinks=False).st_blocks * 512
                    except OSError:
                        continue
        except OSError:
            continue
    return size
