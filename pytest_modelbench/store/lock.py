"""Let one run at a time measure into a results folder, workers that outlive it included.

Two files are locked by flock(2), which ends with the process however that ends: the controller
holds ``controller`` alone, its workers share ``workers``. A new controller takes both, which waits
for the last worker of a controller that was killed, and then leaves ``workers`` to its own.
``filelock`` offers no shared lock that ends with its process, so the system call is used.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.parsing import parse
from pytest_modelbench.store.layout import LOCKS, prepare

WAIT_SECONDS = 60.0
"""How long a new run waits for workers of one that ended, before it refuses."""

POLL_SECONDS = 0.1


class RunLock:
    """The right to measure into a results folder, until ``release`` or the end of the process."""

    def __init__(self, controller: int, root: Path) -> None:
        self._descriptor: int | None = controller
        self._root = root

    @classmethod
    def take(
        cls,
        root: Path,
        run: str,
        started: str,
        *,
        wait_seconds: float = WAIT_SECONDS,
        say: Callable[[str], None] = lambda line: None,
    ) -> Self:
        """Take the folder for a run.

        ``say`` is given one line when it has to wait for workers of a run that ended.

        Raises:
            StoreProblem: another run is measuring (with its pid and start), its workers did not
                end in time, or the file system has no locks (with its name).
        """
        prepare(root)
        controller = _open(root / LOCKS / "controller")
        try:
            if not _try_lock(controller, fcntl.LOCK_EX, root):
                raise _refusal(root, _read(controller))
            _require_real_locks(root)
            workers = _open(root / LOCKS / "workers")
            try:
                _wait_for_workers(workers, root, wait_seconds, say)
                os.ftruncate(workers, 0)
                _remove_append_locks(root)
                _write(controller, {"pid": os.getpid(), "run": run, "started": started})
            finally:
                os.close(workers)
        except BaseException:
            os.close(controller)
            raise
        return cls(controller, root)

    def release(self) -> None:
        """Leave the folder to the next run, and none of this one's own locks in it."""
        if self._descriptor is not None:
            _remove_append_locks(self._root)
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class WorkerLock:
    """A worker's share: while it is held, no other run starts. It ends with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def share(cls, root: Path, run: str) -> Self:
        """Share the folder as a worker of a run; StoreProblem when the run has lost it."""
        workers = _open(root / LOCKS / "workers")
        try:
            # Held exclusively for moments only, by a controller that begins.
            fcntl.flock(workers, fcntl.LOCK_SH)
            holder = _read_file(root / LOCKS / "controller")
            if holder.get("run") != run:
                raise StoreProblem(
                    f"run {run} no longer holds the results folder, so this worker must not go on",
                    path=root,
                    remedy="its controller ended; start the run again",
                )
            os.lseek(workers, 0, os.SEEK_END)
            os.write(workers, f"{os.getpid()}\n".encode())
        except BaseException:
            os.close(workers)
            raise
        return cls(workers)

    def release(self) -> None:
        """End the share."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def holder(root: Path) -> dict[str, object]:
    """Return pid, run and start of the run that measures into a folder; empty where none does."""
    path = root / LOCKS / "controller"
    if not path.exists():
        return {}
    descriptor = _open(path)
    try:
        return {} if _try_lock(descriptor, fcntl.LOCK_SH, root) else _read(descriptor)
    finally:
        os.close(descriptor)


def _remove_append_locks(root: Path) -> None:
    """Remove what writers of ended runs locked their appends with: one file a run, else for ever.

    Only by who holds the folder. A writer that is still there loses no line: appends of one
    machine do not mix without the lock either.
    """
    for path in (root / LOCKS).glob("append-*.lock"):
        path.unlink(missing_ok=True)


def _wait_for_workers(
    workers: int, root: Path, wait_seconds: float, say: Callable[[str], None]
) -> None:
    deadline = time.monotonic() + wait_seconds
    said = False
    while not _try_lock(workers, fcntl.LOCK_EX, root):
        living = _living_pids(root / LOCKS / "workers")
        who = f"pid {', '.join(map(str, living))}" if living else "pid unknown"
        if not said:
            say(
                f"waiting up to {wait_seconds:.0f} s for workers of a run that has ended to finish "
                f"their cells ({who})"
            )
            said = True
        if time.monotonic() >= deadline:
            raise StoreProblem(
                f"workers of a run that has ended are still at work after {wait_seconds:.0f} s "
                f"({who})",
                path=root / LOCKS / "workers",
                remedy="wait for them or end them, then run again",
            )
        time.sleep(POLL_SECONDS)


def _refusal(root: Path, found: dict[str, object]) -> StoreProblem:
    return StoreProblem(
        f"another run is measuring into this folder: pid {found.get('pid', 'unknown')}, "
        f"started {found.get('started', 'a moment ago')}",
        path=root,
        remedy="wait for it, end it, or name another folder with --modelbench-results",
    )


def _require_real_locks(root: Path) -> None:
    """Refuse a file system on which a second lock of a locked file succeeds (FR40)."""
    probe = _open(root / LOCKS / "controller")
    try:
        if _try_lock(probe, fcntl.LOCK_EX, root):
            raise _no_locks(root, "grants every lock")
    finally:
        os.close(probe)


def _try_lock(descriptor: int, how: int, root: Path) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL):
            raise _no_locks(root, str(error.strerror)) from error
        raise
    return True


def _no_locks(root: Path, why: str) -> StoreProblem:
    return StoreProblem(
        f"the file system {_file_system(root)} has no locks that work ({why}), so two runs could "
        "measure the same cells",
        path=root,
        remedy="name a folder on a local disk with --modelbench-results",
    )


def _file_system(path: Path) -> str:
    """Return type and mount point of the file system of a path, as Linux tells them."""
    best, name = "", "of this folder"
    target = str(path.resolve())
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
            left, _, right = line.partition(" - ")
            mount = left.split()[4].replace("\\040", " ")
            inside = target == mount or target.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):
                best, name = mount, f"{right.split()[0]} at {mount}"
    return name


def _living_pids(path: Path) -> list[int]:
    living = []
    with suppress(OSError, ValueError):
        for line in path.read_text(encoding="ascii").split():
            try:
                os.kill(int(line), 0)
            except PermissionError:
                living.append(int(line))
            except ProcessLookupError:
                continue
            else:
                living.append(int(line))
    return living


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreProblem(f"the lock cannot be opened: {error.strerror}", path=path) from error


def _write(descriptor: int, content: dict[str, object]) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(content).encode(), 0)


def _read(descriptor: int) -> dict[str, object]:
    return _parsed(os.pread(descriptor, 4096, 0))


def _read_file(path: Path) -> dict[str, object]:
    try:
        return _parsed(path.read_bytes())
    except OSError:
        return {}


def _parsed(data: bytes) -> dict[str, object]:
    try:
        found = parse(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
