"""The walk: see what is in a folder that a candidate made, without ever leaving it or waiting."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Kind(StrEnum):
    """What an entry of a folder is. All but ``file`` and ``folder`` are oddities."""

    FILE = "file"
    FOLDER = "folder"
    SYMLINK = "symlink"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"
    UNREADABLE = "unreadable"
    BAD_NAME = "bad-name"
    TOO_DEEP = "too-deep"
    NESTED_GIT = "nested-git"


@dataclass(frozen=True)
class Entry:
    """One entry; ``parent`` is a descriptor of its folder, valid until the walk goes on.

    ``path`` is relative to the walk's folder; what is not UTF-8 in it is escaped.
    """

    path: str
    kind: Kind
    mode: int
    size: int
    parent: int
    name: str

    def open(self) -> int:
        """Open a file without waiting or following; OSError when it is no regular file any more."""
        descriptor = os.open(self.name, _FILE, dir_fd=self.parent)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{self.path} is no regular file any more")
        return descriptor


class Walk:
    """Walk a folder by descriptors, in the order of names; ``truncated`` tells of a limit met.

    ``.git`` is left out at any depth. Not more than ``count`` entries are looked at, and no folder
    deeper than ``depth``.
    """

    def __init__(self, root: Path | int, *, depth: int = 64, count: int = 20_000) -> None:
        self.truncated = False
        self._root = root
        self._depth = depth
        self._left = count

    def __iter__(self) -> Iterator[Entry]:
        descriptor = os.dup(self._root) if isinstance(self._root, int) else _open(self._root)
        try:
            yield from self._folder(descriptor, "", 1)
        finally:
            os.close(descriptor)

    def _folder(self, descriptor: int, prefix: str, depth: int) -> Iterator[Entry]:
        for name in self._names(descriptor):
            try:
                info = os.lstat(name, dir_fd=descriptor)
            except OSError:  # gone since
                continue
            kind = _kind(name, info.st_mode)
            if kind is Kind.FOLDER and name.lower() != ".git" and depth >= self._depth:
                kind = Kind.TOO_DEEP
            if name.lower() == ".git":
                if depth == 1:
                    continue
                kind = Kind.NESTED_GIT
            path = prefix + (name if kind is not Kind.BAD_NAME else ascii(os.fsencode(name))[2:-1])
            entry = Entry(path, kind, info.st_mode, info.st_size, descriptor, name)
            if kind is not Kind.FOLDER:
                yield entry
                continue
            try:
                inner = os.open(name, _FOLDER, dir_fd=descriptor)
            except OSError:
                yield Entry(path, Kind.UNREADABLE, info.st_mode, 0, descriptor, name)
                continue
            try:
                yield entry
                yield from self._folder(inner, f"{path}/", depth + 1)
            finally:
                os.close(inner)

    def _names(self, descriptor: int) -> list[str]:
        names: list[str] = []
        with os.scandir(descriptor) as found:
            for child in found:
                if self._left == 0:
                    self.truncated = True
                    break
                self._left -= 1
                names.append(child.name)
        return sorted(names)


def _kind(name: str, mode: int) -> Kind:
    try:
        name.encode()
    except UnicodeEncodeError:
        return Kind.BAD_NAME
    if stat.S_ISLNK(mode):
        return Kind.SYMLINK
    if stat.S_ISFIFO(mode):
        return Kind.FIFO
    if stat.S_ISSOCK(mode):
        return Kind.SOCKET
    if stat.S_ISDIR(mode):
        # A root harness could read it all the same: the same tree gives the same harvest.
        return Kind.FOLDER if mode & 0o500 == 0o500 else Kind.UNREADABLE
    if not stat.S_ISREG(mode):
        return Kind.DEVICE
    return Kind.FILE if mode & 0o400 else Kind.UNREADABLE


def _open(root: Path) -> int:
    return os.open(root, _FOLDER)
