"""Doors: sockets by path that something in a box can connect to."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path


def listen_at(folder: Path, name: str) -> socket.socket:
    """Return a socket that listens at a path, for one who connects, of whatever user.

    The folder is private: who is not given the path by a mount does not reach it.
    """
    waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(folder) as short:
            waiting.bind(f"{short}/{name}")
        (folder / name).chmod(0o666)
        waiting.listen(1)
    except BaseException:
        waiting.close()
        raise
    return waiting


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    """Yield a short name of a folder: a socket's path has room for a hundred characters."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
