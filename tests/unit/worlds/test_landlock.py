"""What Landlock and the filter of system calls hold, beside what holds at every level."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from pytest_modelbench.worlds import landlock, levels, seccomp
from pytest_modelbench.worlds.box import INTERPRETER, TEMPORARY, WORK, Box, BoxSpec, Mount
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.world import World

SCRATCH = BoxSpec(workdir=TEMPORARY)


def python(box: Box, text: str, spec: BoxSpec = SCRATCH, stdin: str = "") -> str:
    """Run a program in a box and return what it said. It comes by a file: no path is replaced."""
    done = box.run(
        [
            "python3",
            "-I",
            "-c",
            "import sys; exec(sys.stdin.readline().encode().decode('unicode_escape'))",
        ],
        spec,
        stdin=(text.encode("unicode_escape").decode() + "\n" + stdin).encode(),
        seconds=60,
    )
    return done.output.decode()


TRY = """
import os
def tried(what, *arguments):
    try:
        what(*arguments)
    except OSError as error:
        return type(error).__name__
    return "done"
"""


def test_files_of_the_host_are_closed(landlock_box: Box, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    said = python(
        landlock_box,
        TRY
        + f"""
for path in ({str(tmp_path / "secret")!r}, "/etc/shadow", "/proc/1/environ", "/proc/1/cmdline"):
    print(tried(open, path))
print(tried(os.listdir, {str(tmp_path)!r}), tried(os.listdir, "/"), tried(os.listdir, "/proc"))
print(tried(open, {str(tmp_path / "new")!r}, "w"), tried(os.unlink, {str(tmp_path / "secret")!r}))
print(tried(os.rename, {str(tmp_path / "secret")!r}, {str(tmp_path / "moved")!r}))
""",
    )
    assert set(said.split()) == {"PermissionError"}
    assert (tmp_path / "secret").exists()


def test_mounts_are_what_they_say(landlock_box: Box, tmp_path: Path) -> None:
    for name in ("work", "fixed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    spec = BoxSpec((Mount(tmp_path / "work", WORK, True), Mount(tmp_path / "fixed", "/fixed")))
    done = landlock_box.run(
        [
            "sh",
            "-c",
            "cat file /fixed/file; echo new >file; echo no >/fixed/file; mkdir a; mv file a",
        ],
        spec,
        seconds=30,
    )
    assert done.output.startswith(b"workfixed")
    assert b"Permission denied" in done.output
    assert (tmp_path / "work" / "a" / "file").read_text() == "new\n"
    assert (tmp_path / "fixed" / "file").read_text() == "fixed"


def test_installed_packages_are_closed(landlock_box: Box) -> None:
    said = python(
        landlock_box,
        "import json, sqlite3, asyncio, multiprocessing\n"
        "for name in ('pytest', 'pip', 'pytest_modelbench'):\n"
        "    try: __import__(name); print('imported', name)\n"
        "    except (ImportError, OSError): print('no')\n",
    )
    assert said.split() == ["no"] * 3


def test_network_is_closed(landlock_box: Box, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as by_path,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        by_path.bind(str(tmp_path / "s"))
        by_path.listen()
        abstract.bind(f"\0modelbench-{os.getpid()}")
        abstract.listen()
        port = server.getsockname()[1]
        said = python(
            landlock_box,
            TRY
            + f"""
import socket
import subprocess
print(tried(socket.create_connection, ("127.0.0.1", {port})))
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16, 17):
        print(tried(socket.socket, family, kind))
a, b = socket.socketpair()
a.send(b"pair"); print(b.recv(4).decode())
""",
        )
    assert said.split() == ["PermissionError"] * 11 + ["pair"]


def test_one_port_is_open_where_a_box_is_given_it(landlock_box: Box, tmp_path: Path) -> None:
    """And nothing beside it; each try is shown to work outside."""
    script = """
import errno, os, socket, sys
port, other, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def tried(what, try_):
    try:
        try_()
        print(what, "done")
    except OSError as error:
        print(what, errno.errorcode[error.errno])

def fast(port):
    with socket.socket() as one:
        one.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", port))

tried("given", lambda: socket.create_connection(("127.0.0.1", port)).close())
tried("other", lambda: socket.create_connection(("127.0.0.1", other)).close())
tried("fast", lambda: fast(other))
tried("listen", lambda: socket.socket().listen())
tried("bind", lambda: socket.socket().bind(("127.0.0.1", 0)))
tried("udp", lambda: socket.socket(type=socket.SOCK_DGRAM))
tried("multipath", lambda: socket.socket(proto=262))
tried("path", lambda: socket.socket(socket.AF_UNIX).connect(path))
tried("pair", socket.socketpair)
"""
    place = str(tmp_path / "daemon")
    with (
        socket.create_server(("127.0.0.1", 0)) as given,
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.socket(socket.AF_UNIX) as daemon,
    ):
        daemon.bind(place)
        daemon.listen()
        ports = [str(one.getsockname()[1]) for one in (given, other)]
        argv = [INTERPRETER, "-I", "-S", "-c", script, *ports, place]
        outside = subprocess.run(argv, capture_output=True, check=True).stdout.decode()
        spec = BoxSpec(workdir="/tmp", connect=given.getsockname()[1])
        told = landlock_box.run(argv, spec, seconds=60).output.decode()
        without = landlock_box.run(argv, SCRATCH, seconds=60).output.decode()
    free = dict(line.split() for line in outside.splitlines())
    assert [free[name] for name in ("given", "other", "listen", "bind", "udp", "path")] == [
        "done"
    ] * 6
    held = dict(line.split() for line in told.splitlines())
    refused = {"EPERM", "EACCES"}
    assert held.pop("given") == held.pop("pair") == "done"
    assert set(held) == {"other", "fast", "listen", "bind", "udp", "multipath", "path"}
    assert set(held.values()) <= refused
    closed = dict(line.split() for line in without.splitlines())
    assert closed.pop("pair") == "done"
    assert set(closed.values()) == {"EPERM"}


def test_other_processes_are_out_of_reach(landlock_box: Box) -> None:
    said = python(
        landlock_box,
        TRY
        + f"""
import signal
print(tried(os.kill, {os.getpid()}, 0), tried(os.kill, {os.getpid()}, signal.SIGUSR1))
print(tried(os.kill, os.getppid(), signal.SIGKILL))
print(tried(open, "/proc/{os.getpid()}/environ"), tried(open, "/proc/{os.getpid()}/mem"))
""",
    )
    assert set(said.split()) == {"PermissionError"}


def test_a_world_is_committed_in(box: Box, world: World) -> None:
    done = box.run(
        [
            "sh",
            "-c",
            "git status --short && echo x >new && git add new && git commit -qm n && "
            "git log --oneline | wc -l",
        ],
        world.spec(),
        seconds=60,
    )
    assert done.output.split() == [b"2"], done.output


def test_roots_powers_are_gone_at_the_weakest_level_too(box: Box) -> None:
    said = python(
        box,
        TRY
        + """
print(tried(os.chown, os.environ["HOME"], 12345, 12345), tried(os.setuid, 12345))
print(tried(os.mknod, os.environ["HOME"] + "/device", 0o60600, 1))
""",
    )
    assert set(said.split()) <= {"PermissionError", "OSError"}


@pytest.fixture
def filtered_box() -> Box:
    """The kernel's box with a filter of system calls."""
    if not levels.probe()[0].available or not seccomp.supported():
        pytest.skip("there is no box with a filter here")
    return choose("bubblewrap+seccomp")


def test_the_filter_is_on_and_told(filtered_box: Box) -> None:
    assert filtered_box.level == "bubblewrap+seccomp"
    calls = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for number in ({ptrace}, {keyctl}, {unshare}, 425, 428):
    print(libc.syscall(number, 0, 0, 0, 0, 0), ctypes.get_errno())
print(open("/proc/self/status").read().partition("Seccomp:")[2].split()[0])
"""
    import platform

    known = {"x86_64": (101, 250, 272), "aarch64": (117, 219, 97)}[platform.machine()]
    names = dict(zip(("ptrace", "keyctl", "unshare"), known, strict=True))
    said = python(filtered_box, calls.format(**names))
    assert said.split() == ["-1", "1"] * 5 + ["2"]


def test_programs_run_under_the_filter(filtered_box: Box) -> None:
    said = python(
        filtered_box,
        "import subprocess, threading, socket, multiprocessing, asyncio\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname())\n"
        "print('net', asyncio.run(asyncio.sleep(0)))\n",
    )
    assert said.split() == ["thread", "child", "net", "None"]


def test_version() -> None:
    """Else all of these would be skipped where the level is broken."""
    held = levels.probe()[1]
    if landlock.version() >= landlock.OLDEST and seccomp.supported():
        assert held.available, held.why_not
    else:
        assert not held.available
