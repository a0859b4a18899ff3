"""Runs: the private folders that runs of this user keep their worlds in, and their sweeping.

``<place>/modelbench-<uid>/<run id>/<random>`` is one attempt's world. The place is TMPDIR where
that is set, else shared memory where it is large (a world is made there in a third of the time),
else the temporary folder. A run is alive as long as one of its processes (controller or worker)
holds the run's lock file; the kernel lets go of it however a process ends, so a killed run is known
by that and swept at the next start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.worlds.removal import remove

_SHARED_MEMORY = Path("/dev/shm")

SCRATCH = ".scratch"
"""Start of the names ``.scratch-<pid>-<random>``: one command's, while its process lives."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def runs_root() -> Path:
    """Return the folder of this user's runs, made when missing; it is 0700 and surely ours."""
    root = _place() / f"modelbench-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise UsageProblem(
            f"{root} is not a folder that only this user can enter; remove it, or set TMPDIR"
        )
    return root


def runs_roots() -> tuple[Path, ...]:
    """Return every folder that runs of this user may have left something in, for ``sweep``."""
    runs_root()
    places = dict.fromkeys((Path(tempfile.gettempdir()), _SHARED_MEMORY))
    roots = (place / f"modelbench-{os.geteuid()}" for place in places)
    return tuple(root for root in roots if root.is_dir() and root.lstat().st_uid == os.geteuid())


def _place() -> Path:
    if "TMPDIR" not in os.environ and _has_room(_SHARED_MEMORY):
        return _SHARED_MEMORY
    return Path(tempfile.gettempdir())


def _has_room(folder: Path) -> bool:
    """Tell whether a folder is on a large file system and can hold programs that run.

    Containers' shared memory is small, and forbids to run programs. What is free just now does not
    count: all processes of a run must come to the same place.
    """
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    may_run = not found.f_flag & getattr(os, "ST_NOEXEC", 0)
    large = found.f_blocks * found.f_frsize >= 4 * 2**30
    return may_run and large and os.access(folder, os.W_OK)


@contextlib.contextmanager
def open_run(root: Path, run_id: str) -> Iterator[Path]:
    """Share a run: yield its folder, hold its lock. ``close_run`` or ``sweep`` removes the folder.

    Controller and workers enter alike; the run counts as alive until the last of them has left.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise ValueError(f"a run id is letters, digits, '-' and '_', not {run_id!r}")
    lock = _share_lock(root / f"{run_id}.lock")
    try:
        folder = root / run_id
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        yield folder
    finally:
        os.close(lock)


def is_alive(root: Path, run_id: str) -> bool:
    """Tell whether a process of a run still holds its lock."""
    try:
        descriptor = os.open(root / f"{run_id}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def sweep(root: Path, alive: Callable[[str], bool] | None = None) -> tuple[str, ...]:
    """Remove what dead runs left; return a line for each thing that could not be removed.

    ``alive`` tells a run id's life in another way than by its lock (a list of known runs).
    """
    problems: list[str] = []
    names = {entry.name.removesuffix(".lock") for entry in os.scandir(root)}
    for run_id in sorted(name for name in names if _RUN_ID.fullmatch(name)):
        if alive is not None and alive(run_id):
            continue
        problems.extend(close_run(root, run_id))
    for folder in root.glob(f"{SCRATCH}-*-*"):
        if not _exists(folder.name.split("-")[1]):
            problems.extend(remove(folder))
    return tuple(problems)


def close_run(root: Path, run_id: str) -> tuple[str, ...]:
    """Remove a run's folder and lock unless a process still holds it; return what would not go."""
    lock_path = root / f"{run_id}.lock"
    lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return ()
        problems = remove(root / run_id)
        if not problems:
            # Unlinked while held: whoever waits for this lock finds that it is no longer the file.
            lock_path.unlink(missing_ok=True)
        return problems
    finally:
        os.close(lock)


def _exists(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _share_lock(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            if _is_file(path, descriptor):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)


def _is_file(path: Path, descriptor: int) -> bool:
    there, held = path.lstat(), os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)
