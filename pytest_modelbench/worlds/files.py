"""Files: read, write and list a live work tree for an agent's tools, never outside of it.

A candidate may plant links while a tool runs. So every path is walked by descriptors from the tree
down, and no link is followed. Texts of errors are for the model: they hold no path of the host.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_modelbench.worlds.box import WORK
from pytest_modelbench.worlds.walk import Kind, Walk
from pytest_modelbench.worlds.world import World

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class WorldPathError(ValueError):
    """A path of a model's that cannot be used; the text says why, to the model."""


@dataclass(frozen=True)
class Listing:
    """Paths of regular files, sorted; ``more`` when there are others beyond the limit."""

    paths: tuple[str, ...]
    more: bool


def read_text_bytes(world: World, path: str, *, limit: int = 16 * 2**20) -> bytes:
    """Return the content of a regular file of the tree, as it is, up to ``limit`` bytes."""
    parts = _parts(path)
    with _opened_parent(world, parts, path) as parent:
        descriptor = _open(parent, parts[-1], path, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            data = file.read(limit + 1) if size <= limit else b""
    if size > limit or len(data) > limit:
        raise WorldPathError(f"{path} is too large to read: {max(size, len(data))} bytes")
    return data


def write_bytes(world: World, path: str, data: bytes) -> bool:
    """Write a regular file of the tree, its folders too; return whether it is new."""
    parts = _parts(path)
    with _opened_parent(world, parts, path, make=True) as parent:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
            descriptor = os.open(parts[-1], flags, 0o644, dir_fd=parent)
            new = True
            _give(world, descriptor)
        except FileExistsError:
            descriptor = _open(parent, parts[-1], path, os.O_WRONLY)
            new = False
        except OSError as error:
            raise WorldPathError(f"{path} cannot be written: {error.strerror}") from None
        with os.fdopen(descriptor, "wb") as file:
            os.ftruncate(descriptor, 0)
            file.write(data)
    return new


def list_files(world: World, path: str = ".", *, limit: int = 2000) -> Listing:
    """Return the regular files below a folder of the tree, relative to the tree."""
    parts = _parts(path, folder=True)
    prefix = "/".join(parts)
    with _opened_parent(world, [*parts, ""], path) as folder:
        walk = Walk(folder, count=max(10 * limit, 20_000))
        paths: list[str] = []
        for entry in walk:
            if entry.kind is Kind.FILE:
                if len(paths) == limit:
                    return Listing(tuple(paths), more=True)
                paths.append(f"{prefix}/{entry.path}" if prefix else entry.path)
    return Listing(tuple(paths), more=walk.truncated)


def _parts(path: str, *, folder: bool = False) -> list[str]:
    """Return the names that lead from the tree to a path; ``/work/x`` is taken for ``x``."""
    inner = path
    if posixpath.isabs(path):
        if path != WORK and not path.startswith(f"{WORK}/"):
            raise WorldPathError(f"{path} is outside of {WORK}")
        inner = path[len(WORK) :].lstrip("/")
    normal = posixpath.normpath(inner or ".")
    parts = [] if normal == "." else normal.split("/")
    if ".." in parts:
        raise WorldPathError(f"{path} is outside of {WORK}")
    if "\0" in path:
        raise WorldPathError("a path cannot hold a NUL character")
    if any(part.lower() == ".git" for part in parts):
        raise WorldPathError(f"{path} belongs to git and cannot be read or written")
    if not parts and not folder:
        raise WorldPathError(f"{path or 'the path'} does not name a file")
    return parts


@contextlib.contextmanager
def _opened_parent(
    world: World, parts: list[str], path: str, *, make: bool = False
) -> Iterator[int]:
    """Open the folder that holds the last of ``parts``, from the tree down, without links."""
    current = os.open(world.tree, _FOLDER)
    try:
        for index, name in enumerate(parts[:-1]):
            shown = "/".join(parts[: index + 1])
            if make:
                with contextlib.suppress(FileExistsError, OSError):
                    os.mkdir(name, 0o755, dir_fd=current)
                    if world.owner is not None:
                        os.chown(
                            name, world.owner, world.owner, dir_fd=current, follow_symlinks=False
                        )
            try:
                inner = os.open(name, _FOLDER, dir_fd=current)
            except FileNotFoundError:
                raise WorldPathError(f"{shown} does not exist") from None
            except OSError as error:
                raise WorldPathError(_why_not(current, name, shown, error)) from None
            os.close(current)
            current = inner
        yield current
    except UnicodeEncodeError:
        raise WorldPathError(f"{path!a} is no name of a file") from None
    finally:
        os.close(current)


def _open(parent: int, name: str, path: str, how: int) -> int:
    try:
        descriptor = os.open(name, how | _SAFE, dir_fd=parent)
    except FileNotFoundError:
        raise WorldPathError(f"{path} does not exist") from None
    except OSError as error:
        raise WorldPathError(_why_not(parent, name, path, error)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise WorldPathError(f"{path} is {what}")
    return descriptor


def _why_not(parent: int, name: str, shown: str, error: OSError) -> str:
    with contextlib.suppress(OSError):
        mode = os.lstat(name, dir_fd=parent).st_mode
        if stat.S_ISLNK(mode):
            return f"{shown} is a symbolic link; name the file that it leads to"
        if stat.S_ISDIR(mode):
            return f"{shown} is a folder"
        if stat.S_ISREG(mode) and isinstance(error, NotADirectoryError):
            return f"{shown} is a file and not a folder"
        if not stat.S_ISREG(mode):
            return f"{shown} is no regular file"
    return f"{shown} cannot be opened: {error.strerror}"


def _give(world: World, descriptor: int) -> None:
    if world.owner is not None:
        os.fchown(descriptor, world.owner, world.owner)
