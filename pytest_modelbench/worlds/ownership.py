"""Ownership: the powerless user that boxes run as when the harness is root.

A box made by root with a user namespace of its own still runs as uid 0 of the host: it reads every
root-only file that is mounted, and the kernel grants uid 0 more than it says. So root's boxes run
as a uid that owns nothing, in a user namespace that maps this one uid and forbids further ones. See
``docs/design/box.md``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from pathlib import Path

from pytest_modelbench.errors import Fault

UNPRIVILEGED = 1_900_000_000
"""Uid and gid of the host, of a range that no system or container manager gives out."""

NOBODY = 65534
"""Taken instead where a container's user namespace does not reach as far."""

INSIDE = 1000
"""Uid and gid that a candidate sees, always."""

_lock = threading.Lock()
_namespace: int | None = None


def owner() -> int | None:
    """Return the uid to run boxes as; None for our own (an ordinary user, a rootless root)."""
    if os.geteuid() != 0:
        return None
    for uid in (UNPRIVILEGED, NOBODY):
        if _mapped("uid_map", uid) and _mapped("gid_map", uid):
            return uid
    return None


def user_namespace(uid: int) -> int:
    """Return a descriptor of a user namespace with ``uid`` alone; one a process, kept open."""
    global _namespace
    with _lock:
        if _namespace is None:
            _namespace = _make_namespace(uid)
        return _namespace


def give(folder: Path, uid: int | None) -> None:
    """Give a folder, and all in it, to a uid; links are given, not followed. None: do nothing.

    For folders that only the harness has written so far.
    """
    if uid is None:
        return
    os.chown(folder, uid, uid, follow_symlinks=False)
    for parent, folders, files, fd in os.fwalk(folder):
        del parent
        for name in (*folders, *files):
            os.chown(name, uid, uid, dir_fd=fd, follow_symlinks=False)


def _mapped(name: str, uid: int) -> bool:
    try:
        lines = Path("/proc/self", name).read_text().splitlines()
    except OSError:
        return False
    ranges = (tuple(map(int, line.split())) for line in lines)
    return any(inside <= uid < inside + length for inside, _, length in ranges)


def _make_namespace(uid: int) -> int:
    """Make the namespace with a helper that is gone afterwards; only the descriptor keeps it.

    The helper keeps its capabilities over ``exec`` to set the namespace's own limit of further
    user namespaces to none; nobody in it can raise that again.
    """
    script = "echo; read go; echo 0 >/proc/sys/user/max_user_namespaces && echo done; read go"
    helper = subprocess.Popen(
        ["unshare", "--user", "--keep-caps", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"},
    )
    assert helper.stdin is not None
    assert helper.stdout is not None
    assert helper.stderr is not None
    descriptor = -1
    try:
        if helper.stdout.readline() == b"\n":
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{helper.pid}/{name}").write_text(f"{INSIDE} {uid} 1\n")
            descriptor = os.open(f"/proc/{helper.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            helper.stdin.write(b"\n")
            helper.stdin.flush()
            if helper.stdout.readline() == b"done\n":
                kept, descriptor = descriptor, -1
                return kept
        raise OSError(helper.stderr.read().decode(errors="replace").strip() or "unshare failed")
    except OSError as error:
        raise Fault("box", f"no user namespace for uid {uid}: {error}") from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)
        for stream in (helper.stdin, helper.stdout, helper.stderr):
            with contextlib.suppress(OSError):
                stream.close()
        helper.wait()
