"""The watch on disk: end a command whose trees grow until others have no room, say when it is full.

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

LEAST = 16 * 2**20
"""Bytes of free space below which nothing that is done on a disk says anything of a candidate."""

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


def room_problem(folder: Path, tree: Path | None = None) -> str:
    """Return that the disk of a folder of worlds is full and what to do, '' where it is not.

    A disk that a candidate filled itself, in ``tree``, is its own doing.
    """
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if free >= LEAST or (tree is not None and tree_bytes(tree) > LARGE):
        return ""
    return (
        f"the disk is full: {free / 2**20:.1f} MiB are left in {folder}, and {LEAST // 2**20} MiB "
        "are needed; make room there, or let TMPDIR name another place"
    )


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
