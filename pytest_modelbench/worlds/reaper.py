"""The reaper: a small program between the harness and a command that no kernel box holds.

Run as a script, alone in its interpreter: it imports nothing of this package. As a subreaper
(Linux) it inherits every descendant of its command whose parent ends, so a daemon that left its
group and its session is still found and killed. It ends all when its command ends, and when told to
(a byte on the control pipe, or its end: the harness is gone). On the report pipe it writes the
command's process id and, when nothing is left, ``wait status, processes that would not go``.

It ends as its command did, told as a shell does (128 + n for a signal).

Arguments: control and report descriptor, grace in seconds, limits as ``NAME=number,…``, what the
kernel holds the command to (JSON, empty for nothing: ``landlock.py`` makes it), command. As process
1 of a container its one argument is the path of a socket, which all of this comes through, the
descriptors, the environment and the working folder as well (``container.py`` is its other end).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any, NoReturn  # Any: JSON that the harness made

_SWEEP_SECONDS = 10.0


def main(arguments: list[str]) -> int:
    """Run the command to its end or to the harness's word; leave nothing of it."""
    control, report, grace = int(arguments[0]), int(arguments[1]), float(arguments[2])
    limits = dict(pair.split("=") for pair in arguments[3].split(","))
    for descriptor in (control, report):
        os.set_inheritable(descriptor, False)
    _become_subreaper()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    child = os.fork()
    if child == 0:
        _become(arguments[5:], limits, arguments[4])
    os.write(report, b"%d\n" % child)
    _let_go_of_pipes({control, report, woken, wake})
    status: int | None = None
    deadline = None
    while status is None:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        watched = [woken] if deadline is not None else [control, woken]
        ready, _, _ = select.select(watched, [], [], left)
        if woken in ready:
            os.read(woken, 4096)
            status = _reap(child)
        elif control in ready:
            _signal_group(child, signal.SIGTERM)
            deadline = time.monotonic() + grace
        else:
            _signal_group(child, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
    _signal_group(child, signal.SIGKILL)
    os.write(report, b"%d %d\n" % (status, _kill_descendants()))
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def take_in(place: str) -> list[str]:
    """Take arguments, descriptors, environment and folder from a socket; answer ``ok``, or why not.

    Nothing but what comes from there is in the environment and open afterwards.
    """
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.connect(place)
        head, descriptors, _, _ = socket.recv_fds(door, 8, 253)
        with door.makefile("rb") as rest:
            told = json.loads(rest.read(int(head, 16)))
        try:
            os.chdir(told["workdir"])
            wanted = told["descriptors"]
            # Out of the way first: what came may have the number that another one is to have.
            above = [fcntl.fcntl(one, fcntl.F_DUPFD, max(wanted) + 1) for one in descriptors]
            os.environ.clear()
            os.environ.update(told["environment"])
        except (OSError, ValueError) as error:
            door.sendall(f"no: {error}".encode())
            sys.exit(125)
        door.sendall(b"ok")
    os.closerange(0, max(wanted) + 1)
    for descriptor, number in zip(above, wanted, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments: list[str] = told["arguments"]
    return arguments


def _become(command: list[str], limits: dict[str, str], confinement: str) -> NoReturn:
    try:
        os.setsid()
        _drop_powers()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for name, value in limits.items():
            which = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(which)[1]
            most = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
            with contextlib.suppress(ValueError, OSError):  # macOS refuses some of them
                resource.setrlimit(which, (most, most))
        if confinement:
            _confine(json.loads(confinement))
        os.execvp(command[0], command)
    except FileNotFoundError:
        os.write(2, f"{command[0]}: not found\n".encode(errors="replace"))
        os._exit(127)
    except BaseException as error:
        os.write(2, f"{command[0]}: {error}\n".encode(errors="replace"))
        os._exit(126)


def _drop_powers() -> None:
    """Make sure that the command gets no power of root, nor by a program that gives some."""
    if sys.platform != "linux":
        return
    drop_bounding, no_new_privileges = 24, 38
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        capability = 0
        while libc.prctl(drop_bounding, capability, 0, 0, 0) == 0:
            capability += 1
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot give up privileges")


def _confine(told: dict[str, Any]) -> None:
    """Hold this process and what it becomes to the rules of Landlock and the filter of seccomp."""
    create, add_rule, restrict = 444, 445, 446
    below_path, to_port, seccomp, by_filter = 1, 2, 22, 2
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: object) -> int:
        done = libc.syscall(number, *arguments)
        if done < 0:
            raise OSError(ctypes.get_errno(), f"Landlock refuses (system call {number})")
        return int(done)

    handled = struct.pack("=QQQ", told["files"], told["network"], told["scopes"])
    rules = call(create, handled, ctypes.c_size_t(len(handled)), 0)
    for path, rights in told["rules"]:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        call(add_rule, rules, below_path, struct.pack("=Qi", rights, place), 0)
        os.close(place)
    for port, rights in told["ports"]:
        call(add_rule, rules, to_port, struct.pack("=QQ", rights, port), 0)
    call(restrict, rules, 0)
    os.close(rules)
    code = bytes.fromhex(told["filter"])
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    if libc.prctl(seccomp, by_filter, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the filter of system calls is refused")


def _let_go_of_pipes(kept: set[int]) -> None:
    """Leave the command's pipes to the command: their end is then its end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for descriptor in range(3, 256):
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _reap(child: int) -> int | None:
    """Take in all that has ended; return the command's wait status once it is among that."""
    status = None
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            status = ended


def _kill_descendants() -> int:
    """Kill until no descendant is left; return how many would not go within some seconds.

    All are stopped before one is killed: a shell that waits for a command would go on to its next.
    """
    until = time.monotonic() + _SWEEP_SECONDS
    stopped: set[int] = set()
    while True:
        _reap(-1)
        found = _descendants()
        if not found or time.monotonic() > until:
            return len(found)
        new = found - stopped
        for pid in new or found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP if new else signal.SIGKILL)
        stopped |= new
        if not new:
            time.sleep(0.001)  # the kernel is at it; there is nothing to wait on for a grandchild


def _descendants() -> set[int]:
    """Return all processes below this one, as /proc tells; none where there is no /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_bytes().rpartition(b")")[2].split()
            parents[int(entry.parent.name)] = int(fields[1])
    found: set[int] = set()
    level = {os.getpid()}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level} - found
        found |= level
    return found


def _become_subreaper() -> None:
    if sys.platform == "linux":
        pr_set_child_subreaper = 36
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(pr_set_child_subreaper, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot become a subreaper")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] if len(sys.argv) > 2 else take_in(sys.argv[1])))
