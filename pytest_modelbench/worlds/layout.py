"""Layout: what the file system of a box is made of, as options of bubblewrap."""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from pytest_modelbench.worlds import ownership
from pytest_modelbench.worlds.box import HOME, INTERPRETER, TEMPORARY, BoxSpec
from pytest_modelbench.worlds.runs import runs_root

PROGRAMS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders of the system beside ``/usr``; links into it on today's systems, and kept as they are."""

FROM_HOST = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d")
"""What programs of the host need of ``/etc`` to be found; it says nothing of the host's users."""

SHARED_MEMORY_BYTES = 64 * 2**20


def layout(spec: BoxSpec) -> list[str]:
    """Return the options for a root of the system, scratch space and the mounts of a spec."""
    fixed, covered = _system()
    options = [*fixed]
    targets = {mount.target for mount in spec.mounts}
    made = set(covered)
    for scratch in (TEMPORARY, HOME):
        if scratch not in targets:
            options += _parents(scratch, made)
            options += ["--perms", "1777", "--size", str(spec.scratch_bytes), "--tmpfs", scratch]
            made.add(scratch)
    for mount in spec.mounts:
        options += _parents(mount.target, made)
        how = "--bind" if mount.writable else "--ro-bind"
        options += [how, str(mount.source), mount.target]
        made.add(mount.target)
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", spec.workdir]


def program_folders() -> list[str]:
    """Return the folders of the host that hold programs, the interpreter's among them."""
    folders = ["/usr", *(folder for folder in PROGRAMS if Path(folder).is_dir())]
    folders = [folder for folder in folders if folder == "/usr" or not Path(folder).is_symlink()]
    return [*folders, *_prefixes(folders)]


def hidden_folders(made: Iterable[str]) -> list[str]:
    """Return folders below the mounted ones that hold what a candidate must not read.

    Installed packages (this one among them, or the solution of a case), and the project itself
    where it lies below ``/usr``, as it does in many images.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = ["/usr/src", "/usr/local/src", str(Path(__file__).resolve().parents[2])]
    for prefix in (sys.base_prefix, os.path.realpath(sys.base_prefix), "/usr", "/usr/local"):
        folders += [f"{prefix}/lib/{version}/{kind}-packages" for kind in ("site", "dist")]
        folders += [f"{prefix}/lib/python3/dist-packages"]
    if sys.prefix != sys.base_prefix:
        folders.append(sys.prefix)
    folders.append(str(Path.cwd()))
    kept: list[str] = []
    for folder in dict.fromkeys(folders):
        inside = any(folder != root and _below(folder, [root]) for root in made)
        needless = _below(INTERPRETER, [folder]) or _below(folder, kept)
        if inside and not needless and Path(folder).is_dir() and not Path(folder).is_symlink():
            kept.append(folder)
    return kept


def etc(number: int, laid_over: tuple[str, ...] = ()) -> Path:
    """Return a folder with the few files of ``/etc`` that programs ask for; made once a machine.

    ``number`` is the uid and gid of the candidate, as the candidate sees them; ``laid_over`` are
    files that something else will be mounted on.
    """
    files = {
        "passwd": f"root:x:0:0:root:/:/bin/false\n"
        f"candidate:x:{number}:{number}:candidate:{HOME}:/bin/sh\n",
        "group": f"root:x:0:\ncandidate:x:{number}:\n",
        "hosts": "127.0.0.1 localhost box\n::1 localhost box\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "hostname": "box\n",
    }
    places = {name: Path("/etc", name).is_dir() for name in FROM_HOST}
    places |= dict.fromkeys(laid_over, False)
    key = hashlib.sha256(repr((files, places)).encode()).hexdigest()[:16]
    folder = runs_root() / f".etc-{key}"
    if folder.is_dir():
        return folder
    fresh = runs_root() / f".etc-{secrets.token_hex(8)}"
    fresh.mkdir(mode=0o755)
    fresh.chmod(0o755)
    for name, text in files.items():
        (fresh / name).write_text(text)
        (fresh / name).chmod(0o644)
    for name, is_folder in places.items():
        if is_folder:
            (fresh / name).mkdir()
        else:
            (fresh / name).touch()
    try:
        fresh.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        for path in fresh.iterdir():
            path.rmdir() if path.is_dir() else path.unlink()
        fresh.rmdir()
    return folder


@functools.cache
def _system() -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the options that are the same for all boxes of a process, and what they cover."""
    options = ["--ro-bind", "/usr", "/usr"]
    made = {"/usr", "/proc", "/dev", "/etc"}
    for folder in PROGRAMS:
        if Path(folder).is_symlink():
            options += ["--symlink", str(Path(folder).readlink()), folder]
        elif Path(folder).is_dir():
            options += ["--ro-bind", folder, folder]
            made.add(folder)
    for prefix in _prefixes(made):
        options += _parents(prefix, made)
        options += ["--ro-bind", prefix, prefix]
        made.add(prefix)
    for folder in hidden_folders(made):
        options += ["--perms", "0755", "--size", "4096", "--tmpfs", folder, "--remount-ro", folder]
    options += ["--ro-bind", str(etc(ownership.INSIDE)), "/etc"]
    for name in FROM_HOST:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    options += ["--perms", "1777", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]
    return tuple(options), frozenset(made)


def _prefixes(made: Iterable[str]) -> list[str]:
    """Return where the interpreter lives, by its name and by where that leads, when not mounted."""
    found: list[str] = []
    for prefix in (sys.base_prefix, os.path.realpath(sys.base_prefix)):
        if not _below(prefix, [*made, *found]):
            found.append(prefix)
    return found


def _below(path: str, folders: Iterable[str]) -> bool:
    pure = PurePosixPath(path)
    return any(pure.is_relative_to(folder) for folder in folders)


def _parents(target: str, made: Iterable[str]) -> list[str]:
    """Return options that make the folders above a target; else they would be closed to others."""
    options: list[str] = []
    for parent in reversed(PurePosixPath(target).parents):
        name = str(parent)
        if name != "/" and not _below(name, made):
            options += ["--perms", "0755", "--dir", name]
    return options
