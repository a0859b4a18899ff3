"""The files of a folder as data: read without following a link, within limits."""

from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path

MAX_FILES = 20_000
MAX_BYTES = 256 * 2**20
MAX_DEPTH = 64


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return path → content of the regular files below a folder, sorted by path.

    Links, pipes, sockets and devices are left out, and so is what goes past the limits: code that
    may be hostile could write here, so nothing is opened that could lead elsewhere or block.
    """
    found: dict[str, bytes] = {}
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _walk(root, "", found, MAX_BYTES, MAX_DEPTH)
    finally:
        os.close(root)
    return dict(sorted(found.items()))


def _walk(folder: int, prefix: str, found: dict[str, bytes], room: int, depth: int) -> int:
    with os.scandir(folder) as entries:
        some = itertools.islice(entries, MAX_FILES)
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in some]
    for name, is_folder in sorted(names):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(name, flags | (os.O_DIRECTORY if is_folder else 0), dir_fd=folder)
        except OSError:
            continue
        try:
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                if depth > 0:
                    room = _walk(fd, f"{prefix}{name}/", found, room, depth - 1)
            elif stat.S_ISREG(status.st_mode) and status.st_size <= room and len(found) < MAX_FILES:
                content = _read(fd, status.st_size)
                found[prefix + name] = content
                room -= len(content)
        except OSError:
            continue
        finally:
            os.close(fd)
    return room


def _read(fd: int, size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = os.read(fd, min(size, 2**20))
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
