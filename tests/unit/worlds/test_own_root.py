"""What boxes with a root of their own promise; with positive controls: the try works outside."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_modelbench.worlds import ownership
from pytest_modelbench.worlds.box import INTERPRETER, Box, BoxSpec, Mount
from pytest_modelbench.worlds.levels import ON_DEMAND
from pytest_modelbench.worlds.repository import SeedRepository
from pytest_modelbench.worlds.world import open_world

SCRATCH = BoxSpec(workdir="/tmp")


def _sh(box: Box, script: str, spec: BoxSpec = SCRATCH) -> str:
    return box.run(["sh", "-c", script], spec, seconds=60).output.decode(errors="replace")


def test_files_of_the_host_are_absent(root_box: Box, tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("42")
    script = f"cat {tmp_path}/answer"
    assert subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout == b"42"
    assert "No such file" in _sh(root_box, script)


def test_root_only_shows_what_is_named(root_box: Box) -> None:
    allowed = {"bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "sbin"}
    allowed |= {
        "tmp",
        "usr",
        INTERPRETER.split("/")[1],
        os.path.realpath(sys.base_prefix).split("/")[1],
    }
    laid_over = set()
    if root_box.level in ON_DEMAND:
        allowed |= {"sys", "opt", ".dockerenv", "run"}
        laid_over = {"resolv.conf"}
    assert set(_sh(root_box, "ls -A /").split()) <= allowed
    etc = set(_sh(root_box, "ls -A /etc").split())
    assert not (etc - laid_over) & {"shadow", "machine-id", "resolv.conf", "fstab", "ssh"}


def test_installed_packages_are_hidden(root_box: Box) -> None:
    script = "import pytest"
    subprocess.run([sys.executable, "-c", script], check=True)
    told = root_box.run([INTERPRETER, "-c", script], SCRATCH, seconds=60).output
    assert b"ModuleNotFoundError" in told
    library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [f"{sys.base_prefix}/{library}/site-packages", "/usr/lib/python3/dist-packages"]
    folders += [f"/usr/local/{library}/dist-packages", "/usr/src", "/usr/local/src"]
    assert _sh(root_box, f"ls -A {' '.join(folders)} 2>/dev/null | grep -v ':$' | grep .") == ""


def test_network_is_absent(root_box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        subprocess.run([sys.executable, "-c", script], check=True)
        told = root_box.run([INTERPRETER, "-c", script], SCRATCH, seconds=60).output
    assert b"ConnectionRefusedError" in told
    assert _sh(root_box, "tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]


def test_abstract_sockets_of_the_host_are_absent(root_box: Box) -> None:
    name = f"\0modelbench-{secrets.token_hex(4)}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        script = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        subprocess.run([sys.executable, "-c", script], check=True)
        told = root_box.run([INTERPRETER, "-c", script], SCRATCH, seconds=60).output
    assert b"ConnectionRefusedError" in told


def test_processes_of_the_host_are_absent(root_box: Box) -> None:
    pids = _sh(root_box, "cd /proc; echo [0-9]*").split()
    assert len(pids) <= 4
    assert str(os.getpid()) not in pids or os.getpid() <= 4


def test_nothing_of_the_harness_shows_in_process_1(
    root_box: Box, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECRET_KEY", "tell-nobody")
    spec = BoxSpec(
        workdir="/tmp", mounts=(Mount(tmp_path, "/data"),), environment={"TOKEN": "given"}
    )
    told = _sh(root_box, "cat /proc/1/environ /proc/1/cmdline | tr '\\0' '\\n'", spec)
    assert "reaper.py" in told if root_box.level in ON_DEMAND else "bwrap" in told
    assert "tell-nobody" not in told
    assert "given" not in told
    assert str(tmp_path) not in told


def test_no_power_is_left(root_box: Box) -> None:
    told = _sh(root_box, "id -u; grep -E '^(Cap|NoNew)' /proc/self/status")
    lines = dict(line.split(":\t") for line in told.splitlines()[1:])
    user = ownership.INSIDE
    if root_box.level in ON_DEMAND:
        user = os.geteuid() if root_box.owner is None else root_box.owner
    assert told.splitlines()[0] == str(user) != "0"
    assert lines.pop("NoNewPrivs") == "1"
    assert set(lines.values()) == {"0" * 16}


def test_kernel_settings_cannot_be_written(root_box: Box) -> None:
    told = _sh(
        root_box,
        "for f in core_pattern hostname modprobe; do "
        "test -w /proc/sys/kernel/$f && echo $f; done; echo end",
    )
    assert told == "end\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="for a harness that is root")
def test_roots_files_are_closed_even_where_mounted(root_box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("for root alone")
    secret.chmod(0o600)
    spec = BoxSpec(workdir="/tmp", mounts=(Mount(secret, "/secret"),))
    assert "Permission denied" in _sh(root_box, "cat /secret", spec)
    secret.chmod(0o644)
    assert _sh(root_box, "cat /secret", spec) == "for root alone"


@pytest.mark.skipif(os.geteuid() != 0, reason="for a harness that is root")
def test_files_of_a_box_made_by_root_are_not_roots(
    root_box: Box, seed: SeedRepository, tmp_path: Path
) -> None:
    with open_world(seed, tmp_path, root_box.owner) as world:
        _sh(root_box, "touch made; ln -s /etc/shadow link", world.spec())
        assert (world.tree / "made").stat().st_uid == root_box.owner
        assert root_box.owner not in (0, None)


def test_read_only_places(root_box: Box, tmp_path: Path) -> None:
    spec = BoxSpec(workdir="/tmp", mounts=(Mount(tmp_path, "/data"),))
    script = "for d in / /usr /etc /dev /data /proc/sys; do touch $d/x 2>/dev/null && echo $d; done"
    assert _sh(root_box, script, spec) == ""


def test_scratch_space_is_bounded(root_box: Box) -> None:
    spec = BoxSpec(workdir="/tmp", scratch_bytes=2**20)
    script = "for i in 1 2 3 4; do head -c 500000 /dev/zero >$i; done; du -sb . | cut -f1"
    told = _sh(root_box, script, spec)
    assert "No space left" in told
    assert int(told.split()[-1]) <= 2**20


def test_processes_are_bounded(root_box: Box) -> None:
    spec = BoxSpec(workdir="/tmp", processes=40)
    script = (
        "import os, time\nn = 0\ntry:\n    while n < 200:\n        if os.fork() == 0:\n"
        "            time.sleep(60)\n        n += 1\nexcept BlockingIOError:\n    print(n)"
    )
    told = root_box.run([INTERPRETER, "-I", "-S", "-c", script], spec, seconds=60).output
    assert 20 < int(told) < 41


def test_git_configuration_is_pinned(root_box: Box, seed: SeedRepository, tmp_path: Path) -> None:
    with open_world(seed, tmp_path, root_box.owner) as world:
        before = (world.repository / "config").read_text()
        script = """
            git config core.fsmonitor /tmp/evil || echo refused
            echo evil >/work.git/hooks/post-checkout || echo refused
            echo '* filter=evil' >>/work.git/info/attributes || echo refused
            echo 'gitdir: /tmp/other' >.git || echo refused
            mv .git other || echo refused
            rm -rf /work.git/hooks || echo refused
            echo new >new && git add new && git commit --quiet -m work && echo committed
        """
        told = _sh(root_box, script, world.spec())
        assert told.count("refused") == 6
        assert told.endswith("committed\n")
        assert (world.repository / "config").read_text() == before
        assert list((world.repository / "hooks").iterdir()) == []


def test_paths_name_no_case_and_no_other_attempt(
    root_box: Box, seed: SeedRepository, tmp_path: Path
) -> None:
    with (
        open_world(seed, tmp_path, root_box.owner) as world,
        open_world(seed, tmp_path, root_box.owner) as other,
    ):
        told = _sh(
            root_box, "cat /proc/self/mountinfo; grep -r . /work.git/worktrees", world.spec()
        )
        assert world.folder.name in told
        assert other.folder.name not in told


def test_read_only_world(root_box: Box, seed: SeedRepository, tmp_path: Path) -> None:
    with open_world(seed, tmp_path, root_box.owner) as world:
        told = _sh(root_box, "touch new; git log --oneline | wc -l", world.spec(writable=False))
        assert "Read-only file system" in told
        assert told.endswith("1\n")
