"""Removal: take a folder away whatever a candidate made of it."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

_DEEPEST = 32
"""Folders below this depth are moved up first: neither recursion nor descriptors run out."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(folder: Path) -> tuple[str, ...]:
    """Remove a folder and all in it; return a line for each thing that would not go, 20 at most.

    Never follows a link. For folders in which no other process is at work any more: modes of
    closed folders are opened by name. A missing folder is no problem.
    """
    problems: list[str] = []
    try:
        parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ()
    try:
        top = _open_folder(parent, folder.name)
        try:
            while not problems and (names := _names(top)):
                for name in names:
                    _remove_entry(top, name, f"{folder}/{name}", 1, top, problems)
        finally:
            os.close(top)
        if not problems:
            os.rmdir(folder.name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError as error:
        problems.append(f"{folder}: {error.strerror}")
    finally:
        os.close(parent)
    return tuple(problems[:20])


def _remove_entry(
    parent: int, name: str, shown: str, depth: int, top: int, problems: list[str]
) -> None:
    try:
        if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
            os.unlink(name, dir_fd=parent)
            return
        descriptor = _open_folder(parent, name)
        try:
            if depth > _DEEPEST:
                os.rename(name, f".{secrets.token_hex(8)}", src_dir_fd=parent, dst_dir_fd=top)
                return
            for inner in _names(descriptor):
                _remove_entry(descriptor, inner, f"{shown}/{inner}", depth + 1, top, problems)
        finally:
            os.close(descriptor)
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError as error:
        problems.append(f"{shown}: {error.strerror}")


def _names(descriptor: int) -> list[str]:
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in entries]


def _open_folder(parent: int, name: str) -> int:
    found = os.lstat(name, dir_fd=parent)
    if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)
